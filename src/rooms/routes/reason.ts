import { Type } from 'typebox';
import type { JsonObject } from '../../protocol/index.ts';

/** The optional `reason` member of many request bodies. Bots send null for no reason (decision 0123). */
export const reasonMember = { reason: Type.Optional(Type.Union([Type.String(), Type.Null()])) };

export interface WithReason {
  readonly reason?: string | null;
}

/** The `reason` member of the event's content; empty without a reason. */
export const reasonOf = ({ reason }: WithReason): JsonObject =>
  typeof reason === 'string' ? { reason } : {};
