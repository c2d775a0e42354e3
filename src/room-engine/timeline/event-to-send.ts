import { badJson, type JsonObject } from '../../protocol/index.ts';

/** An event that a local user wants to send; everything else follows from the room. */
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
 * Refuses a type or state key that no database takes as text: one such event would spoil the commit that it shares
 * with others.
 * @throws MatrixError M_BAD_JSON
 */
export function checkStorable({ type, stateKey = '' }: EventToSend): void {
  if (!isStorableText(type) || !isStorableText(stateKey)) throw badJson('A type or state key is not text');
}

/** Whether a string is one that every database can hold. */
export const isStorableText = (value: string): boolean => value.isWellFormed() && !value.includes('\0');
