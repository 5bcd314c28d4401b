import { workersIn } from '../support/workers-tests.mjs';

await workersIn('firefox');
