import type { DeviceCleanup } from '../devices/index.ts';
import type { AnyWriter } from '../kernel/database/index.ts';
import { jsonFacts, type Publish, Stream } from '../kernel/streams/index.ts';
import type { DeviceAddress } from './keys/one-time-key-store.ts';

/**
 * The stream of devices whose one-time or fallback keys have changed. It is constructed before the `Devices` service,
 * because that service calls `devicesRemoved` for deleted devices.
 */
export class DeviceKeyChanges implements DeviceCleanup {
  readonly keyStream = new Stream<DeviceAddress>('device_keys', jsonFacts());

  async devicesRemoved(
    _writer: AnyWriter,
    publish: Publish,
    userId: string,
    deviceIds: readonly string[],
  ): Promise<void> {
    for (const deviceId of deviceIds) publish(this.keyStream, { userId, deviceId });
  }
}
