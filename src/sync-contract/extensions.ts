import type { Static, TObject } from 'typebox';

/** A room in a response of sliding sync. */
export interface ExtensionRoom {
  readonly roomId: string;
  /**
   * The client has this extension's data of the room up to this position; `undefined`: the client receives all data.
   */
  readonly after: number | undefined;
  /**
   * Whether the extension may have new data for this room: the feed says so, or does not reach back far enough.
   */
  readonly mayHaveChanged: boolean;
  /** Ids of the room's events in the response. */
  readonly eventIds: readonly string[];
}

/** A sliding sync extension with one event for each room. Source: MSC4186, "Extensions". */
export interface RoomExtension {
  /** The name under which clients request it. */
  readonly name: string;
  /**
   * Returns the event of each room that has one, as JSON text by room id.
   * @param upTo stream position of the response: later data is left to the next response
   */
  inRooms(
    userId: string,
    rooms: readonly ExtensionRoom[],
    upTo: number,
  ): ReadonlyMap<string, string> | Promise<ReadonlyMap<string, string>>;
}

/** The data of an extension in one response. */
export interface ExtensionAnswer {
  /** JSON object as text. */
  readonly text: string;
  /** Whether a waiting response is sent at once because of this data. */
  readonly hasNewData: boolean;
}

/** A sliding sync extension with data of the user, not of rooms. */
export interface Extension {
  /** The name under which clients request it. */
  readonly name: string;
  /** The fields of a request besides `enabled`. */
  readonly request: TObject;
  /** @param range stream positions of the new data; `after: undefined` where the client has no data yet */
  answer(
    userId: string,
    range: { readonly after: number | undefined; readonly upTo: number },
    request: unknown,
  ): Promise<ExtensionAnswer>;
}

/** Makes an extension whose `answer` receives the request with the type that its schema `request` describes. */
export function defineExtension<R extends TObject>(extension: {
  readonly name: string;
  readonly request: R;
  answer(
    userId: string,
    range: { readonly after: number | undefined; readonly upTo: number },
    request: Static<R>,
  ): Promise<ExtensionAnswer>;
}): Extension {
  return {
    ...extension,
    answer: (userId, range, request) => extension.answer(userId, range, request as Static<R>),
  };
}
