import type { RoomReader } from '../../room-engine/index.ts';
import type { CheckAddressInvite } from '../../third-party-invites/index.ts';
import { throwDenial } from '../accounts/account-checks.ts';
import { firstDenial } from '../calls/call-all.ts';
import type { ModuleCalls } from '../calls/module-calls.ts';
import type { RegisteredCallbacks } from '../registered-callbacks.ts';
import { roomStateOf } from '../rooms/room-state.ts';

/**
 * Returns the check of modules for invites to a mail address or phone number that belongs to no user; `undefined` where
 * no module has such a check.
 */
export function addressInviteCheck(
  callbacks: RegisteredCallbacks,
  calls: ModuleCalls,
  engine: RoomReader,
): CheckAddressInvite | undefined {
  const checkers = callbacks.with('spamChecker', 'mayInviteAddress');
  const rules = callbacks.with('eventRules', 'mayInviteAddress');
  if (checkers.length + rules.length === 0) return undefined;
  return async (inviter, { medium, address }, roomId) => {
    throwDenial(
      await firstDenial(calls, 'mayInviteAddress', checkers, (check) =>
        check(inviter, medium, address, roomId),
      ),
    );
    const state = roomStateOf(() => engine, roomId, calls.context);
    throwDenial(
      await firstDenial(calls, 'mayInviteAddress', rules, (check) => check(medium, address, state)),
    );
  };
}
