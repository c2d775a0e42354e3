import { isJsonObject, type MatrixError } from '../../protocol/index.ts';
import {
  type ChangedContent,
  type EventCheck,
  type EventCheckContext,
  type EventToSend,
  mayChange,
  type RoomReader,
} from '../../room-engine/index.ts';
import type { Decision, EventDraft, EventRules } from '../api/index.ts';
import { decide } from '../calls/decide.ts';
import type { ModuleCalls } from '../calls/module-calls.ts';
import type { ModuleCallbacks, RegisteredCallbacks } from '../registered-callbacks.ts';
import { roomStateOf } from '../rooms/room-state.ts';

/** An event of a local user to check, with its context. */
interface CheckedEvent {
  readonly draft: EventDraft;
  /** All events of a new room. */
  readonly newRoom: readonly EventDraft[] | undefined;
  /**
   * For joins to rooms that exist: the membership of the sender before the join; `leave` for users without a membership.
   */
  readonly membership: string | undefined;
}

/** A callback of a module that checks events of some kinds. */
interface ConditionalCheck {
  readonly module: string;
  readonly callback: string;
  /** Returns the call of the callback for an event; `undefined` for events that it does not check. */
  callFor(event: CheckedEvent): (() => Decision | Promise<Decision>) | undefined;
}

/** Returns the checks of modules, for `EventChecks`; an empty list if no module has a check. */
export function moduleEventChecks(
  callbacks: RegisteredCallbacks,
  calls: ModuleCalls,
  engine: RoomReader,
): EventCheck[] {
  const conditionalChecks = conditionalChecksOf(callbacks);
  const rules = callbacks.with('eventRules', 'checkEventAllowed');
  const checks: EventCheck[] = [];
  if (conditionalChecks.length > 0) {
    checks.push({ check: (draft, context) => check(conditionalChecks, calls, engine, draft, context) });
  }
  for (const rule of rules) {
    checks.push({ check: (draft, context) => checkAllowed(rule, calls, engine, draft, context) });
  }
  return checks;
}

async function check(
  conditionalChecks: readonly ConditionalCheck[],
  calls: ModuleCalls,
  engine: RoomReader,
  draft: EventToSend,
  { roomId, newRoom }: EventCheckContext,
): Promise<MatrixError | undefined> {
  const checkedEvent: CheckedEvent = {
    draft: draftFor(draft, roomId),
    newRoom: newRoom?.map((event) => draftFor(event, roomId)),
    membership:
      roomId !== undefined && isOwnJoin(draft, newRoom)
        ? await membershipOf(engine, draft, roomId)
        : undefined,
  };
  for (const { module, callback, callFor } of conditionalChecks) {
    const call = callFor(checkedEvent);
    const error = call && (await decide(calls, module, callback, call));
    if (error !== undefined) return error;
  }
  return undefined;
}

/** Calls `checkEventAllowed` of one module, which may change the content of the event. */
async function checkAllowed(
  { module, callbacks: rule }: ModuleCallbacks<NonNullable<EventRules['checkEventAllowed']>>,
  calls: ModuleCalls,
  engine: RoomReader,
  draft: EventToSend,
  { roomId }: EventCheckContext,
): Promise<MatrixError | ChangedContent | undefined> {
  const state = roomStateOf(() => engine, roomId, calls.context);
  let changed: ChangedContent | undefined;
  const denial = await decide(calls, module, 'checkEventAllowed', async () => {
    const answer = await rule(draftFor(draft, roomId), state);
    const { content } = Object(answer) as Partial<ChangedContent>;
    if (!isJsonObject(content)) return answer as Decision;
    // The event is signed and stored later, when the module may have changed its object.
    const copy = structuredClone(content);
    // This change is not allowed: `decide` rejects the event, because the answer is not 'allow'.
    if (!mayChange(draft, copy)) return answer as Decision;
    changed = { content: copy };
    return 'allow';
  });
  return denial ?? changed;
}

/**
 * Returns the checks of events besides `checkEventAllowed`, in the order in which they are called. Most concern only
 * some events.
 */
function conditionalChecksOf(callbacks: RegisteredCallbacks): ConditionalCheck[] {
  const checksOf = <T>(
    name: string,
    found: ModuleCallbacks<T>[],
    callFor: (callback: T, event: CheckedEvent) => (() => Decision | Promise<Decision>) | undefined,
  ) =>
    found.map(({ module, callbacks: callback }) => ({
      module,
      callback: name,
      callFor: (event: CheckedEvent) => callFor(callback, event),
    }));
  return [
    ...checksOf(
      'mayCreateRoom',
      callbacks.with('spamChecker', 'mayCreateRoom'),
      (callback, { draft, newRoom }) =>
        isCreation(draft) ? () => callback(draft.sender, newRoom ?? [draft]) : undefined,
    ),
    ...checksOf(
      'checkRoomCreation',
      callbacks.with('eventRules', 'checkRoomCreation'),
      (callback, { draft, newRoom }) =>
        isCreation(draft) ? () => callback(draft.sender, newRoom ?? [draft]) : undefined,
    ),
    ...checksOf('mayInvite', callbacks.with('spamChecker', 'mayInvite'), (callback, { draft }) => {
      const { stateKey } = draft;
      if (stateKey === undefined || membershipIn(draft) !== 'invite') return undefined;
      return () => callback(draft.sender, stateKey, draft.roomId);
    }),
    ...checksOf(
      'mayJoinRoom',
      callbacks.with('spamChecker', 'mayJoinRoom'),
      (callback, { draft: { roomId, sender }, membership }) =>
        roomId === undefined || membership === undefined || membership === 'join'
          ? undefined
          : () => callback(sender, roomId, membership === 'invite'),
    ),
    ...checksOf(
      'checkStateEvent',
      callbacks.with('spamChecker', 'checkStateEvent'),
      (callback, { draft, newRoom }) => {
        const { stateKey } = draft;
        const isChecked = stateKey !== undefined && newRoom === undefined && draft.type !== 'm.room.member';
        return isChecked ? () => callback({ ...draft, stateKey }) : undefined;
      },
    ),
    ...checksOf(
      'checkEvent',
      callbacks.with('spamChecker', 'checkEvent'),
      (callback, { draft }) =>
        () =>
          callback(draft),
    ),
  ];
}

/** Whether the event is a user's own join, or a change of the user's profile, in a room that exists. */
const isOwnJoin = (draft: EventToSend, newRoom: unknown) =>
  newRoom === undefined && draft.stateKey === draft.sender && membershipIn(draft) === 'join';

const membershipOf = async (engine: RoomReader, { sender }: EventToSend, roomId: string): Promise<string> =>
  (await engine.userRooms.of(sender)).get(roomId)?.membership ?? 'leave';

const isCreation = ({ type, stateKey }: EventDraft) => type === 'm.room.create' && stateKey === '';

const membershipIn = ({ type, content }: Pick<EventDraft, 'type' | 'content'>) =>
  type === 'm.room.member' ? content['membership'] : undefined;

/**
 * Returns an event as modules receive it. Its content is a copy, so that a change of the copy does not change the
 * event.
 */
const draftFor = (
  { type, stateKey, sender, content, redacts }: EventToSend,
  roomId: string | undefined,
): EventDraft => ({
  roomId,
  type,
  ...(stateKey !== undefined && { stateKey }),
  sender,
  content: structuredClone(content),
  ...(redacts !== undefined && { redacts }),
});
