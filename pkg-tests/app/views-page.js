import * as relampago from 'relampago';
import { runViews } from './views.js';

globalThis.outcome = runViews(relampago, new URLSearchParams(location.search).get('backend'));
