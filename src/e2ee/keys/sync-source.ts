import type { Stream } from '../../kernel/streams/index.ts';
import { whenReady } from '../../kernel/when-ready.ts';
import type { DeviceRef, SyncSource } from '../../sync-contract/index.ts';
import type { DeviceKeyCounts, KeyCounts } from './key-counts.ts';
import type { DeviceAddress } from './one-time-key-store.ts';

const noKeys: DeviceKeyCounts = { oneTimeKeyCounts: {}, unusedFallbackKeyTypes: [] };

/** Texts of the counts in memory: an idle client gets the same ones again and again. */
const texts = new WeakMap<DeviceKeyCounts, string>();

/**
 * How many keys of the device are left on the server. Every answer has the counts: clients take an algorithm that is not
 * named for used up. Source: client-server API, "Extensions to /sync" of "End-to-End Encryption"; MSC3884.
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
      members: async (device, _range, hasFacts) => ({ text: await constant(device), isNews: hasFacts }),
    },
  };
}

function textOf(supply: DeviceKeyCounts): string {
  const known = texts.get(supply);
  if (known !== undefined) return known;
  const text =
    `,"device_one_time_keys_count":${JSON.stringify(supply.oneTimeKeyCounts)}` +
    `,"device_unused_fallback_key_types":${JSON.stringify(supply.unusedFallbackKeyTypes)}`;
  texts.set(supply, text);
  return text;
}
