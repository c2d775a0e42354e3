import { Type } from 'typebox';
import type { JsonObject } from '../../protocol/index.ts';

/** The optional `reason` field of many request bodies. Bots send null for no reason (decision 0123). */
export const reasonField = { reason: Type.Optional(Type.Union([Type.String(), Type.Null()])) };

export interface WithReason {
  readonly reason?: string | null;
}

/** Returns a content with the `reason` of a request; empty when the request has no reason. */
export const reasonOf = ({ reason }: WithReason): JsonObject =>
  typeof reason === 'string' ? { reason } : {};
