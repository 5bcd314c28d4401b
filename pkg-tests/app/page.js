import * as relampago from 'relampago';
import { run } from './app.js';

globalThis.outcome = run(relampago, new URLSearchParams(location.search).get('backend'));
