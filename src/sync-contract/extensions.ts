import type { Static, TObject } from 'typebox';

/** A room that an answer of sliding sync is about. */
export interface ExtensionRoom {
  readonly roomId: string;
  /** Where the client is with this extension in this room; `undefined`: it gets everything. */
  readonly after: number | undefined;
  /** Whether the feed says, or cannot exclude, that the extension has something new here. */
  readonly mayHaveChanged: boolean;
  /** Ids of the events of the room that the answer holds. */
  readonly eventIds: readonly string[];
}

/** A sliding sync extension with one event for each room. Source: MSC4186, "Extensions". */
export interface RoomExtension {
  /** The name under which clients ask for it. */
  readonly name: string;
  /** The event of each room that has something to say, as JSON text by room id. */
  inRooms(
    userId: string,
    rooms: readonly ExtensionRoom[],
    upTo: number,
  ): ReadonlyMap<string, string> | Promise<ReadonlyMap<string, string>>;
}

/** What an extension has to say. */
export interface ExtensionAnswer {
  /** JSON object as text. */
  readonly text: string;
  /** Whether it is a reason to answer at once. */
  readonly isNews: boolean;
}

/** A sliding sync extension that is about the user. */
export interface Extension {
  /** The name under which clients ask for it. */
  readonly name: string;
  /** The fields of a request besides `enabled`. */
  readonly request: TObject;
  answer(
    userId: string,
    range: { readonly after: number | undefined; readonly upTo: number },
    request: unknown,
  ): Promise<ExtensionAnswer>;
}

/** An extension whose `answer` gets the request in the type of its schema. */
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
