import * as relampago from 'relampago/full';
import { runFull } from './full.js';

globalThis.outcome = runFull(relampago, new URLSearchParams(location.search).get('backend'));
