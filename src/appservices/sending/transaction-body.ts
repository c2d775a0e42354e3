import type { JsonObject } from '../../protocol/index.ts';

/** The ids of users whose device lists a service has to query again, or no longer has to track. */
export interface DeviceLists {
  /** Users whose device lists have changed, or who have begun to share an encrypted room with the service. */
  readonly changed: readonly string[];
  /** Users who share no room with the service any more. */
  readonly left: readonly string[];
}

/** The parts of a transaction. Empty parts are left out, except `events`. */
export interface TransactionParts {
  readonly events: readonly JsonObject[];
  readonly ephemeral: readonly JsonObject[];
  readonly toDevice: readonly JsonObject[];
  readonly deviceLists: DeviceLists;
  /** Counts of unclaimed one-time keys, by user id and device id. */
  readonly oneTimeKeyCounts: JsonObject;
  /** Algorithms of unused fallback keys, by user id and device id. */
  readonly unusedFallbackKeyTypes: JsonObject;
}

/**
 * Returns the body of a transaction as JSON. Parts that come from a proposal are written twice: under their stable names
 * and under the names of the proposal. Source: application service API, "Pushing events", MSC2409, MSC3202, MSC4203.
 */
export function transactionBody(parts: TransactionParts): string {
  const { events, ephemeral, toDevice, deviceLists: lists, oneTimeKeyCounts, unusedFallbackKeyTypes } = parts;
  return JSON.stringify({
    events,
    ...(ephemeral.length > 0 && { ephemeral, 'de.sorunome.msc2409.ephemeral': ephemeral }),
    ...(toDevice.length > 0 && { to_device: toDevice, 'de.sorunome.msc2409.to_device': toDevice }),
    ...(lists.changed.length + lists.left.length > 0 && {
      device_lists: lists,
      'org.matrix.msc3202.device_lists': lists,
    }),
    ...(Object.keys(oneTimeKeyCounts).length > 0 && {
      device_one_time_keys_count: oneTimeKeyCounts,
      'org.matrix.msc3202.device_one_time_key_counts': oneTimeKeyCounts,
      'org.matrix.msc3202.device_one_time_keys_count': oneTimeKeyCounts,
      device_unused_fallback_key_types: unusedFallbackKeyTypes,
      'org.matrix.msc3202.device_unused_fallback_key_types': unusedFallbackKeyTypes,
    }),
  });
}
