import type { JsonObject } from '../../protocol/index.ts';

/** What is stored about the device list of a remote user, except for the devices. */
export interface RemoteList {
  readonly userId: string;
  readonly server: string;
  /**
   * Ids of the last applied updates, newest last. Empty when the list was never fetched, or was fetched without a valid
   * stream id.
   */
  readonly streamIds: readonly number[];
  /** Whether an update was missed, or the list was never fetched, so that the list must not answer queries. */
  readonly stale: boolean;
  /** Increases each time an update is missed, also while the list is stale already. */
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
  /** The stream id in the response; empty when it is absent or invalid. */
  readonly streamIds: readonly number[];
  readonly masterKey: JsonObject | undefined;
  readonly selfSigningKey: JsonObject | undefined;
  readonly devices: ReadonlyMap<string, JsonObject>;
}
