import load, { PtxKernel, PtxModule, buildKernel, targetNames } from '#ptx';
import { RelampagoError } from '../common/error.js';
import { loader, located } from '../common/loader.js';

export { PtxKernel, PtxModule, RelampagoError, buildKernel, targetNames };

const present = (object, name) => {
    if (!object.__wbg_ptr) {
        throw new RelampagoError('DISPOSED', `this ${name} was disposed of`);
    }
};

// Both may be freed twice, and later calls fail with an error code. Found by the module,
// it would have none and leave something of the call in its memory.
for (const [name, { prototype }] of Object.entries({ PtxKernel, PtxModule })) {
    const { free } = prototype;
    for (const [key, property] of Object.entries(Object.getOwnPropertyDescriptors(prototype))) {
        const part = property.get ? 'get' : 'value';
        const own = property[part];
        if (key !== 'constructor' && !key.startsWith('_') && own) {
            property[part] = function (...values) {
                present(this, name);
                values.forEach((value) => value instanceof PtxKernel && present(value, 'PtxKernel'));
                return own.apply(this, values);
            };
            Object.defineProperty(prototype, key, property);
        }
    }
    prototype.free = function () {
        if (this.__wbg_ptr) {
            free.call(this);
        }
    };
    if (Symbol.dispose) {
        prototype[Symbol.dispose] = prototype.free;
    }
}

export const moduleUrl = located(() => new URL('./relampago_ptx.wasm', import.meta.url));

export default loader(load, moduleUrl);
