import { badJson, type JsonObject } from '../protocol/index.ts';

/** An event that a local user sends; all other fields follow from the room. */
export interface EventToSend {
  readonly type: string;
  /** Present for state events. */
  readonly stateKey?: string;
  readonly sender: string;
  readonly content: JsonObject;
  /** The event that an `m.room.redaction` redacts. */
  readonly redacts?: string;
  /** Milliseconds since the epoch; by default now. */
  readonly originServerTs?: number | undefined;
}

/**
 * Rejects a type or state key that a database cannot store as text: the transaction that writes such an event together
 * with other events would fail.
 * @throws MatrixError M_BAD_JSON
 */
export function checkStorable({ type, stateKey = '' }: EventToSend): void {
  if (!isStorableText(type) || !isStorableText(stateKey))
    throw badJson('The event type or state key has a NUL character or an unpaired surrogate');
}

/** Returns whether every database can store a string: it is well-formed and has no NUL. */
export const isStorableText = (value: string): boolean => value.isWellFormed() && !value.includes('\0');
