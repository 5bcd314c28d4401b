import * as ptx from 'relampago/ptx';
import { runPtx } from './ptx.js';

globalThis.outcome = runPtx(ptx);
