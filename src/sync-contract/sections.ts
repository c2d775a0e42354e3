import type { JsonObject } from '../protocol/index.ts';
import type { RoomExtension } from './extensions.ts';

/** Positions of the streams after `after`, up to and including `upTo`. */
export interface Range {
  readonly after: number;
  readonly upTo: number;
}

/** The device that syncs; tokens without a device have none. */
export interface DeviceRef {
  readonly userId: string;
  readonly deviceId: string | undefined;
}

/** Events of one type in `rooms.join.{roomId}.ephemeral`. */
export interface EphemeralSection {
  /** The type of the events. Filters may exclude it. */
  readonly type: string;
  /**
   * Whether the section may have changed in a room; called for clients whose feed does not reach back to
   * `after`.
   */
  mayHaveChanged(roomId: string, after: number): boolean;
  /**
   * Returns the events for a user who knows the room up to `range.after`, as JSON text; called only when the
   * section may have changed. Returns at once when all data is in memory.
   */
  since(userId: string, roomId: string, range: Range): readonly string[] | Promise<readonly string[]>;
  /**
   * Returns the events of rooms that are new to the client, as JSON text by room id; rooms without events are
   * absent.
   */
  initial(
    userId: string,
    roomIds: readonly string[],
  ): ReadonlyMap<string, readonly string[]> | Promise<ReadonlyMap<string, readonly string[]>>;
  /** The same data in sliding sync. */
  readonly extension: RoomExtension;
}

/** One piece of account data. */
export interface AccountDataItem {
  /** The room id; `undefined` for global account data. */
  readonly roomId: string | undefined;
  readonly type: string;
  readonly content: JsonObject;
  /** The position of its last change on its stream. */
  readonly position: number;
}

/** Entries in `account_data` and `rooms.join.{roomId}.account_data`. */
export interface AccountDataSection {
  /** Whether there is room account data, besides global account data. */
  readonly hasRooms: boolean;
  /** Whether clients set the data; `GET /initialSync` contains only such data. */
  readonly isSetByClients: boolean;
  /**
   * Returns the data that was set in a range, in the order of setting. Data that was set again after the range may be
   * missing, because a later range contains it.
   */
  since(userId: string, range: Range): Promise<readonly AccountDataItem[]>;
  /** Returns all data of a user. */
  all(userId: string): Promise<readonly AccountDataItem[]>;
}

/** A client's filter for events with a sender and without a room. */
export interface SenderFilter {
  /** Maximum number of events; `undefined` when the client leaves it to the server. */
  readonly limit: number | undefined;
  /** Whether no event passes. */
  readonly passesNothing: boolean;
  passes(event: { readonly type: string; readonly sender: string }): boolean;
}

/** Events in `presence`. */
export interface PresenceSection {
  /**
   * Returns events for a user. Called when the source has new data, and when the user has joined a room.
   * @param request `after: undefined` selects all events, as a first sync does
   */
  events(request: {
    readonly userId: string;
    readonly after: number | undefined;
    readonly upTo: number;
    readonly filter: SenderFilter;
  }): Promise<readonly JsonObject[]>;
}

/** Messages for a device in `to_device`. */
export interface DeviceQueue {
  /** Whether it is known without a query that no message is pending for the device. */
  isEmptyNow(device: { readonly userId: string; readonly deviceId: string }): boolean;
  /** Deletes the messages up to a position, because the device has received them. */
  acknowledge(userId: string, deviceId: string, position: number): Promise<void>;
  /**
   * Returns the oldest messages in a range, each as JSON text, and the position up to which no other messages are
   * pending.
   */
  forSync(
    userId: string,
    deviceId: string,
    range: { readonly after?: number; readonly upTo: number; readonly limit: number },
  ): Promise<{ readonly messages: readonly string[]; readonly position: number }>;
}

/** Top-level fields of a response that concern one device. */
export interface DeviceSection {
  /** Name of the sliding sync extension that has the same fields. */
  readonly extension: string;
  /** Whether the source has certainly nothing new for a client at this position; answered from memory. */
  isQuiet(position: number): boolean;
  /**
   * Returns the fields that every response contains, new or not, as JSON text with a comma in front of each.
   * Returns at once when they are in memory.
   */
  constant(device: DeviceRef): string | Promise<string>;
  /**
   * Returns the fields of a response, in the form of `constant`.
   * @param after `undefined` for a first sync
   * @param hasFacts whether the feed says that the source has new data
   * @returns `hasNewData`: whether a waiting sync must be answered because of these fields
   */
  fields(
    device: DeviceRef,
    range: { readonly after: number | undefined; readonly upTo: number },
    hasFacts: boolean,
  ): Promise<{ readonly text: string; readonly hasNewData: boolean }>;
}

/** Unread counts in the entry of a joined room. */
export interface RoomCounts {
  /**
   * Returns the fields of the room in the classic sync as JSON text, with a comma in front of each. Returns at once
   * when all data is in memory.
   * @param threadsField the name of the field for the counts of threads; `undefined` to add them to those of the room
   */
  fieldsText(
    userId: string,
    roomId: string,
    upTo: number,
    threadsField: string | undefined,
  ): string | Promise<string>;
  /** Returns the fields of the room in sliding sync. */
  fields(userId: string, roomId: string, upTo: number): JsonObject | Promise<JsonObject>;
}
