import { isJsonObject, type RoomEvent } from '../../protocol/index.ts';
import type { CheckReceivedInvite, ReceivedEventChecks, RoomReader } from '../../room-engine/index.ts';
import { throwDenial, unlessNone } from '../accounts/account-checks.ts';
import { firstDenial } from '../calls/call-all.ts';
import type { ModuleCalls } from '../calls/module-calls.ts';
import type { RegisteredCallbacks } from '../registered-callbacks.ts';
import { moduleEvent, roomStateOf } from '../rooms/room-state.ts';

/**
 * Returns the checks of events of remote users; a member is absent where no module has such a check.
 * @param engine for the state of the rooms
 */
export function moduleReceivedEventChecks(
  callbacks: RegisteredCallbacks,
  calls: ModuleCalls,
  engine: () => RoomReader,
): ReceivedEventChecks {
  const dropping = callbacks.with('spamChecker', 'mayReceiveEvent');
  const softFailing = callbacks.with('spamChecker', 'checkReceivedEvent');
  return {
    isDropped: unlessNone(dropping, async (event: RoomEvent) => {
      const given = moduleEvent(event);
      return (await firstDenial(calls, 'mayReceiveEvent', dropping, (check) => check(given))) !== undefined;
    }),
    softFailure: unlessNone(softFailing, async (event: RoomEvent) => {
      const given = moduleEvent(event);
      const state = roomStateOf(engine, event.roomId, calls.context);
      const denial = await firstDenial(calls, 'checkReceivedEvent', softFailing, (check) =>
        check(given, state),
      );
      return denial && `a check of a module did not allow it: ${denial.message}`;
    }),
  };
}

/** Returns the check of invites of local users by remote users; `undefined` where no module has one. */
export function moduleInviteCheck(
  callbacks: RegisteredCallbacks,
  calls: ModuleCalls,
): CheckReceivedInvite | undefined {
  const dropping = callbacks.with('spamChecker', 'mayReceiveEvent');
  const receiving = callbacks.with('spamChecker', 'mayReceiveInvite');
  const inviting = callbacks.with('spamChecker', 'mayInvite');
  if (dropping.length + receiving.length + inviting.length === 0) return undefined;
  return async (event, roomState) => {
    const { stateKey = '', sender, roomId } = event;
    const given = moduleEvent(event);
    throwDenial(await firstDenial(calls, 'mayReceiveEvent', dropping, (check) => check(given)));
    const invite = { ...given, stateKey, roomState: structuredClone(roomState.filter(isJsonObject)) };
    throwDenial(await firstDenial(calls, 'mayReceiveInvite', receiving, (check) => check(invite)));
    throwDenial(await firstDenial(calls, 'mayInvite', inviting, (check) => check(sender, stateKey, roomId)));
  };
}
