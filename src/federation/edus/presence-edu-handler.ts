import type { Clock } from '../../kernel/clock.ts';
import type { Presence, PresenceState, PresenceStatus } from '../../presence/index.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../protocol/index.ts';
import type { RoomReader } from '../../room-engine/index.ts';
import type { EduHandler } from './edu-handlers.ts';
import type { EduRates } from './edu-rates.ts';
import { isEduUserOf } from './edu-users.ts';

export interface PresenceEduDeps {
  readonly engine: Pick<RoomReader, 'userRooms'>;
  readonly presence: Pick<Presence, 'report' | 'isEnabled' | 'isRouted'>;
  readonly clock: Clock;
  readonly rates: EduRates;
}

/** Maximum number of users in one EDU; further users are ignored. */
const maxUsers = 500;

/** Maximum stored length of a status message in characters. */
const maxStatusLength = 1_000;

const states: readonly string[] = ['online', 'unavailable', 'offline'] satisfies PresenceState[];

/**
 * Handles `m.presence` of remote users who share a room with a local user; where modules route presence, also
 * of a bounded number of other users.
 * Source: server-server API, "Presence".
 */
export function presenceHandler({ engine, presence, clock, rates }: PresenceEduDeps): EduHandler {
  return async (origin, { push }) => {
    if (!presence.isEnabled || !Array.isArray(push)) return;
    for (const update of (push as readonly JsonValue[]).slice(0, maxUsers)) {
      if (!isJsonObject(update)) continue;
      const { user_id: userId } = update;
      const status = statusIn(update, clock.now());
      if (!isEduUserOf(origin, userId) || !status || !rates.allow(origin)) continue;
      const sharesRoom = (await engine.userRooms.withMembership(userId, 'join')).length > 0;
      if (sharesRoom || presence.isRouted) presence.report(userId, status, sharesRoom);
    }
  };
}

function statusIn(update: JsonObject, now: number): PresenceStatus | undefined {
  const { presence, status_msg: statusMsg, last_active_ago: ago, currently_active: active } = update;
  if (typeof presence !== 'string' || !states.includes(presence)) return undefined;
  const isShown = typeof statusMsg === 'string' && statusMsg.isWellFormed() && !statusMsg.includes('\0');
  return {
    presence: presence as PresenceState,
    statusMsg: isShown ? statusMsg.slice(0, maxStatusLength).toWellFormed() : undefined,
    lastActive: Number.isSafeInteger(ago) ? Math.max(0, now - Math.max(0, Number(ago))) : 0,
    currentlyActive: active === true,
  };
}
