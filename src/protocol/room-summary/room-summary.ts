import type { JsonObject } from '../json.ts';

export interface RoomSummaryFacts {
  readonly name: string | undefined;
  readonly canonicalAlias: string | undefined;
  /** See `selectHeroes`. */
  readonly heroes: readonly string[];
  readonly joinedCount: number;
  readonly invitedCount: number;
}

/**
 * Returns the complete `summary` of a joined room for /sync. Includes heroes only if the room has neither
 * name nor alias.
 * Source: client-server API, `GET /sync`, "RoomSummary".
 */
export function roomSummaryOf(facts: RoomSummaryFacts): JsonObject {
  return {
    ...(!facts.name && !facts.canonicalAlias && { 'm.heroes': facts.heroes }),
    'm.joined_member_count': facts.joinedCount,
    'm.invited_member_count': facts.invitedCount,
  };
}
