import type { RoomEvent } from '../../../protocol/index.ts';
import { type StoredEvent, withoutEnd } from '../../stored-event.ts';
import type { RoomTables } from '../../tables.ts';
import type { PreparedWrite, ReservePlace } from '../../timeline/event-writer.ts';
import { redactionTakesEffect } from '../../timeline/redaction.ts';
import type { WritableHead } from '../../timeline/writable-head.ts';
import type { PlacementDeps } from '../placement-deps.ts';
import { authStateInGroup, stateLookup } from '../states/auth-state.ts';
import { readPendingRedactionsOf } from '../store.ts';

/** Maximum number of earlier redactions of a target that are checked for an effect when the target arrives. */
const maxPendingPerTarget = 50;

/**
 * Returns the redactions that arrived before their targets and take effect, by the id of the target, in the
 * order of arrival. The first redaction in each list is the one that redacts the target.
 * Source: room version 3, "Handling redactions".
 */
export async function effectivePendingRedactions(
  deps: PlacementDeps,
  targets: readonly RoomEvent[],
): Promise<Map<string, StoredEvent[]>> {
  const effective = new Map<string, StoredEvent[]>();
  const byId = new Map(targets.map((event) => [event.eventId, event]));
  const reader = deps.database.reader<RoomTables>();
  const pending = await readPendingRedactionsOf(reader, [...byId.keys()], maxPendingPerTarget);
  if (pending.length === 0) return effective;
  for (const [targetId, rows] of Map.groupBy(pending, (row) => row.targetId)) {
    const target = byId.get(targetId);
    const nids = rows.map(({ nid }) => nid);
    const redactions = await deps.events.getMany(nids);
    const valid: StoredEvent[] = [];
    for (const nid of nids) {
      const redaction = redactions.get(nid);
      if (target && redaction && (await takesEffect(deps, redaction, target))) valid.push(redaction);
    }
    if (valid.length > 0) effective.set(targetId, valid);
  }
  return effective;
}

async function takesEffect(
  deps: PlacementDeps,
  { event, stateBefore, rejected, softFailed }: StoredEvent,
  target: RoomEvent,
): Promise<boolean> {
  if (stateBefore === undefined || rejected || softFailed) return false;
  const authState = await authStateInGroup(deps, event, stateBefore);
  return redactionTakesEffect(event, target, stateLookup(authState));
}

/**
 * Prepares the writes that show withheld redactions to clients. The redactions keep their places in the room's history.
 */
export function showRedactions(
  head: WritableHead,
  redactions: readonly StoredEvent[],
  reserve: ReservePlace,
): PreparedWrite[] {
  return redactions
    .filter(({ withheld }) => withheld)
    .map((redaction) => {
      const stored: StoredEvent = { ...redaction, withheld: false };
      const reservation = reserve();
      head.revise(stored);
      return {
        head,
        stored,
        rowAction: 'known',
        fact: {
          roomId: head.roomId,
          position: reservation.position,
          onTimeline: false,
          stored,
          stateChanges: [],
          membershipChanges: [],
          ...withoutEnd,
        },
        content: '',
        end: undefined,
        groups: [],
        auth: [],
        redacts: undefined,
        reservation,
      };
    });
}
