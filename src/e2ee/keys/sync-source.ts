import type { Stream } from '../../kernel/streams/index.ts';
import { whenReady } from '../../kernel/when-ready.ts';
import type { DeviceRef, SyncSource } from '../../sync-contract/index.ts';
import type { DeviceKeyCounts, KeyCounts } from './key-counts.ts';
import type { DeviceAddress } from './one-time-key-store.ts';

const noKeys: DeviceKeyCounts = { oneTimeKeyCounts: {}, unusedFallbackKeyTypes: [] };

/** The JSON of cached counts. It is kept because an idle client receives it repeatedly. */
const texts = new WeakMap<DeviceKeyCounts, string>();

/**
 * Adds the counts of a device's keys to each sync response, because clients assume that no keys are left of an
 * algorithm that the response lacks.
 * Source: client-server API, "Extensions to /sync" of "End-to-End Encryption"; MSC3884.
 */
export function keyCountSyncSource(counts: KeyCounts, keyStream: Stream<DeviceAddress>): SyncSource {
  const constant = ({ userId, deviceId }: DeviceRef) => {
    if (deviceId === undefined) return textOf(noKeys);
    return whenReady(counts.get(userId, deviceId), textOf);
  };
  return {
    name: 'key counts',
    follow: (feeds) => feeds.followUsers(keyStream, ({ userId }) => [userId]),
    device: {
      extension: 'e2ee',
      isQuiet: () => true,
      constant,
      fields: async (device, _range, hasFacts) => ({ text: await constant(device), hasNewData: hasFacts }),
    },
  };
}

function textOf(counts: DeviceKeyCounts): string {
  const cachedText = texts.get(counts);
  if (cachedText !== undefined) return cachedText;
  const text =
    `,"device_one_time_keys_count":${JSON.stringify(counts.oneTimeKeyCounts)}` +
    `,"device_unused_fallback_key_types":${JSON.stringify(counts.unusedFallbackKeyTypes)}`;
  texts.set(counts, text);
  return text;
}
