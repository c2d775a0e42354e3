import { evaluateRules, isDummyEvent, NO_OUTCOME, type PushOutcome } from '../../protocol/index.ts';
import { isExpired, isHidden, type StoredEvent } from '../../room-engine/index.ts';
import type { NotifiedMember } from './member.ts';
import type { PreparedEvent } from './push-events.ts';
import type { SearchCount } from './search-count.ts';

/**
 * Returns whether and how an event notifies a member of its room, for unread counts, the list of notifications and
 * pushers. Events that are redacted, expired or hidden from clients notify no user. An event notifies neither its
 * sender nor members who ignore its sender, not even if it is a state event. Receipts, and the time when the user
 * joined, are not considered.
 * Source: client-server API, "Push Rules" and "Ignoring Users".
 * @param searches counts the search steps, where many events are evaluated together
 */
export function outcomeFor(
  { rules, member, ignored, expiredBefore }: NotifiedMember,
  stored: StoredEvent,
  { event }: PreparedEvent,
  searches?: SearchCount,
): PushOutcome {
  if (stored.redactedBy !== undefined || isHidden(stored) || isDummyEvent(stored.event)) return NO_OUTCOME;
  if (ignored.has(stored.event.sender) || isExpired(stored, expiredBefore)) return NO_OUTCOME;
  const outcome = evaluateRules(rules, event, member);
  if (stored.event.sender !== member.userId) searches?.add(event.spentSearchSteps);
  return outcome;
}
