import { ENGINES } from '../support/browser.mjs';
import { workersIn } from '../support/workers-tests.mjs';

if (ENGINES.includes('webkit')) {
  await workersIn('webkit');
}
