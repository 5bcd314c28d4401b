import { useEffect, useState } from 'react';
import init, { GpuDevice } from 'relampago';

/** A device in a worker, which does not block the page; undefined until it is ready. `onError` hears why it fails. */
export function useDevice(onError: (message: string) => void): GpuDevice | undefined {
  const [device, setDevice] = useState<GpuDevice>();
  useEffect(() => {
    let isGone = false;
    let opened: GpuDevice | undefined;
    const open = async (): Promise<void> => {
      await init();
      opened = await GpuDevice.create({ worker: true });
      isGone ? opened.dispose() : setDevice(opened);
    };
    open().catch((error: unknown) => onError(String(error)));
    return () => {
      isGone = true;
      opened?.dispose();
    };
  }, [onError]);
  return device;
}
