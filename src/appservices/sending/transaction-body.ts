import type { JsonObject } from '../../protocol/index.ts';

/** The parts of a transaction. Empty ones are left out, except events. */
export interface TransactionParts {
  readonly events: readonly JsonObject[];
  readonly ephemeral: readonly JsonObject[];
  readonly toDevice: readonly JsonObject[];
  /** Users whose device list has changed. */
  readonly changedLists: readonly string[];
  /** By user id and device id. */
  readonly oneTimeKeyCounts: JsonObject;
  readonly unusedFallbackKeyTypes: JsonObject;
}

/**
 * Returns the body of a transaction as JSON. Parts that were added later have their stable name and that of their
 * proposal. Source: application service API, "Pushing events", MSC2409, MSC3202, MSC4203.
 */
export function transactionBody(parts: TransactionParts): string {
  const { events, ephemeral, toDevice, changedLists, oneTimeKeyCounts, unusedFallbackKeyTypes } = parts;
  const lists = { changed: changedLists, left: [] };
  return JSON.stringify({
    events,
    ...(ephemeral.length > 0 && { ephemeral, 'de.sorunome.msc2409.ephemeral': ephemeral }),
    ...(toDevice.length > 0 && { to_device: toDevice, 'de.sorunome.msc2409.to_device': toDevice }),
    ...(changedLists.length > 0 && { device_lists: lists, 'org.matrix.msc3202.device_lists': lists }),
    ...(Object.keys(oneTimeKeyCounts).length > 0 && {
      device_one_time_keys_count: oneTimeKeyCounts,
      'org.matrix.msc3202.device_one_time_key_counts': oneTimeKeyCounts,
      'org.matrix.msc3202.device_one_time_keys_count': oneTimeKeyCounts,
      device_unused_fallback_key_types: unusedFallbackKeyTypes,
      'org.matrix.msc3202.device_unused_fallback_key_types': unusedFallbackKeyTypes,
    }),
  });
}
