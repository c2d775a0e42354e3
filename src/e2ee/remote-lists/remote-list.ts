import type { JsonObject } from '../../protocol/index.ts';

/** What is known of the devices of a user of another server. */
export interface RemoteList {
  readonly userId: string;
  readonly server: string;
  /** The last updates that the list contains, the newest last; empty when it was never fetched. */
  readonly streamIds: readonly number[];
  /** Whether it can not be relied on, as an update was missed. */
  readonly stale: boolean;
  /** Counts how often it has become stale. */
  readonly revision: number;
  readonly masterKey: JsonObject | undefined;
  readonly selfSigningKey: JsonObject | undefined;
}

/** A list with the keys of its devices, by device id. */
export interface RemoteListWithDevices extends RemoteList {
  readonly devices: ReadonlyMap<string, JsonObject>;
}

/** The keys of a user as their server tells them. */
export interface RemoteSnapshot {
  readonly streamIds: readonly number[];
  readonly masterKey: JsonObject | undefined;
  readonly selfSigningKey: JsonObject | undefined;
  readonly devices: ReadonlyMap<string, JsonObject>;
}
