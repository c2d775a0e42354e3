import type { JsonObject } from '../protocol/index.ts';
import type { RoomExtension } from './extensions.ts';

/** Positions of the streams: what came after `after` and not after `upTo`. */
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
  /** The type of the events: a filter may leave it out. */
  readonly type: string;
  /** Whether the section may have changed in a room; asked for clients whose feed does not reach back to `after`. */
  mayHaveChanged(roomId: string, after: number): boolean;
  /**
   * Events for a user who knows the room up to `range.after`, as JSON text; asked only when the section may have
   * changed. Returns at once when everything that it takes is in memory.
   */
  since(userId: string, roomId: string, range: Range): readonly string[] | Promise<readonly string[]>;
  /** Events in rooms that are new to the client, as JSON text by room id; rooms without any are absent. */
  initial(
    userId: string,
    roomIds: readonly string[],
  ): ReadonlyMap<string, readonly string[]> | Promise<ReadonlyMap<string, readonly string[]>>;
  /** The same data in sliding sync. */
  readonly extension: RoomExtension;
}

/** One piece of account data. */
export interface AccountDataItem {
  /** `undefined` for data that does not belong to a room. */
  readonly roomId: string | undefined;
  readonly type: string;
  readonly content: JsonObject;
  /** Where it was set last on its stream. */
  readonly position: number;
}

/** Entries in `account_data` and `rooms.join.{roomId}.account_data`. */
export interface AccountDataSection {
  /** Whether there is data of rooms, besides data of the user. */
  readonly hasRooms: boolean;
  /** Whether clients set the data; `GET /initialSync` shows no other. */
  readonly isSetByClients: boolean;
  /** What was set in a range, in that order; data that was set again after the range may come with a later one. */
  since(userId: string, range: Range): Promise<readonly AccountDataItem[]>;
  /** All data of a user. */
  all(userId: string): Promise<readonly AccountDataItem[]>;
}

/** A client's filter for events that have senders and belong to no room. */
export interface SenderFilter {
  /** Events at most; `undefined` when the client leaves it to the server. */
  readonly limit: number | undefined;
  /** Whether no event passes. */
  readonly passesNothing: boolean;
  passes(event: { readonly type: string; readonly sender: string }): boolean;
}

/** Events in `presence`. */
export interface PresenceSection {
  /**
   * Events for a user. Asked when the source has something new, and when the user has come into a room.
   * @param request `after: undefined` asks for everything, as a first sync does
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
  /** Whether it is known, without a query, that no message waits for the device. */
  isEmptyNow(device: { readonly userId: string; readonly deviceId: string }): boolean;
  /** Drops the messages up to a position: the device has received them. */
  acknowledge(userId: string, deviceId: string, position: number): Promise<void>;
  /** The oldest messages in a range, each as JSON text, and the position up to which there are no others. */
  forSync(
    userId: string,
    deviceId: string,
    range: { readonly after?: number; readonly upTo: number; readonly limit: number },
  ): Promise<{ readonly messages: readonly string[]; readonly position: number }>;
}

/** Members at the top of an answer that are about one device. */
export interface DeviceSection {
  /** The sliding sync extension that has the same members. */
  readonly extension: string;
  /** Whether it is certain, from memory, that a client that is at this position gets no news. */
  isQuiet(position: number): boolean;
  /**
   * Members that every answer has, news or not, as JSON text with a comma in front of each. Returns at once when they
   * are in memory.
   */
  constant(device: DeviceRef): string | Promise<string>;
  /**
   * The members of an answer, in the same form.
   * @param after `undefined` for a first sync
   * @param hasFacts whether the feed says that the source has something new
   * @returns with `isNews`, whether they are a reason to answer at all
   */
  members(
    device: DeviceRef,
    range: { readonly after: number | undefined; readonly upTo: number },
    hasFacts: boolean,
  ): Promise<{ readonly text: string; readonly isNews: boolean }>;
}

/** Members of a joined room's entry that count what the user has not read. */
export interface RoomCounts {
  /**
   * The members as JSON text with a comma in front of each. Returns at once when everything that it takes is in memory.
   * @param byThread whether the client wants the counts of threads separately (`unread_thread_notifications`)
   */
  members(userId: string, roomId: string, upTo: number, byThread: boolean): string | Promise<string>;
  /** The fields of the room in sliding sync. */
  fields(userId: string, roomId: string, upTo: number): JsonObject | Promise<JsonObject>;
}
