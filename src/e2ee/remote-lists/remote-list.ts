import type { JsonObject } from '../../protocol/index.ts';

/** The device list of a remote user, without devices. */
export interface RemoteList {
  readonly userId: string;
  readonly server: string;
  /** Ids of the last applied updates, newest last; empty when the list was never fetched. */
  readonly streamIds: readonly number[];
  /** Whether an update was missed, so that the list must not be used. */
  readonly stale: boolean;
  /** Increases each time the list becomes stale. */
  readonly revision: number;
  readonly masterKey: JsonObject | undefined;
  readonly selfSigningKey: JsonObject | undefined;
}

/** A list with its device keys by device id. */
export interface RemoteListWithDevices extends RemoteList {
  readonly devices: ReadonlyMap<string, JsonObject>;
}

/** The keys of a user in the response of their server. */
export interface RemoteSnapshot {
  readonly streamIds: readonly number[];
  readonly masterKey: JsonObject | undefined;
  readonly selfSigningKey: JsonObject | undefined;
  readonly devices: ReadonlyMap<string, JsonObject>;
}
