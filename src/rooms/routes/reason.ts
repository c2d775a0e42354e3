import { Type } from 'typebox';
import type { JsonObject } from '../../protocol/index.ts';

/** Why somebody does something: a member of many bodies. Bots send null where there is no reason (decision 0123). */
export const reasonMember = { reason: Type.Optional(Type.Union([Type.String(), Type.Null()])) };

export interface WithReason {
  readonly reason?: string | null;
}

/** The member of an event's content that says why; none where no reason is given. */
export const reasonOf = ({ reason }: WithReason): JsonObject =>
  typeof reason === 'string' ? { reason } : {};
