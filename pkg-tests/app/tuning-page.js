import init, * as relampago from 'relampago/full';

globalThis.relampago = relampago;
globalThis.outcome = init();
