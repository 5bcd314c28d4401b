import init, * as relampago from 'relampago';

globalThis.relampago = relampago;
globalThis.outcome = init();
