export { RelampagoError } from '../common/error.js';
export { LanguageModel } from './language_model.js';
export { Lora } from './lora.js';
export { QuantizedMatrix } from './quantized_matrix.js';
export { TunedLora } from './tuned_lora.js';
export { Session } from './session.js';
export { moduleUrl } from '../common/instructions.js';
export { chatModuleUrl, init as default } from './module.js';
/** For node.js; no part of the interface. */
export { host } from './host.js';
