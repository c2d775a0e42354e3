import type { MatrixError } from '../../protocol/index.ts';
import type { EventCheck, EventCheckContext, EventToSend, RoomReader } from '../../room-engine/index.ts';
import type { Decision, EventDraft } from '../api/index.ts';
import { decide } from '../calls/decide.ts';
import type { ModuleCalls } from '../calls/module-calls.ts';
import type { Registered, RegisteredCallbacks } from '../registered-callbacks.ts';
import { roomStateOf } from '../rooms/room-state.ts';

/** An event with what a check may need to know about it. */
interface Asked {
  readonly draft: EventDraft;
  /** All events of a new room. */
  readonly newRoom: readonly EventDraft[] | undefined;
  /** For joins: the membership of the sender before; `leave` for users without one. */
  readonly membership: string | undefined;
  readonly engine: RoomReader;
}

/** A callback for some events. */
interface Question {
  readonly module: string;
  readonly callback: string;
  /** Returns the answer of the module; `allow` for events that it is not asked about. */
  ask(asked: Asked): Decision | Promise<Decision>;
}

/** Returns the checks of modules, which `EventChecks` runs; none where no module has one. */
export function moduleEventChecks(
  callbacks: RegisteredCallbacks,
  calls: ModuleCalls,
  engine: RoomReader,
): EventCheck[] {
  const questions = questionsOf(callbacks);
  if (questions.length === 0) return [];
  return [{ check: (draft, context) => check(questions, calls, engine, draft, context) }];
}

async function check(
  questions: readonly Question[],
  calls: ModuleCalls,
  engine: RoomReader,
  draft: EventToSend,
  { roomId, newRoom }: EventCheckContext,
): Promise<MatrixError | undefined> {
  const asked: Asked = {
    draft: draftFor(draft, roomId),
    newRoom: newRoom?.map((event) => draftFor(event, roomId)),
    membership:
      roomId !== undefined && isOwnJoin(draft, newRoom)
        ? await membershipOf(engine, draft, roomId)
        : undefined,
    engine,
  };
  for (const { module, callback, ask } of questions) {
    const error = await decide(calls, module, callback, () => ask(asked));
    if (error !== undefined) return error;
  }
  return undefined;
}

/** Returns the callbacks that are asked about events, in the order in which they are asked. */
function questionsOf(callbacks: RegisteredCallbacks): Question[] {
  const question = <T>(name: string, found: Registered<T>[], ask: (callback: T) => Question['ask']) =>
    found.map(({ module, callbacks: callback }) => ({ module, callback: name, ask: ask(callback) }));
  return [
    ...question(
      'mayCreateRoom',
      callbacks.checkersWith('mayCreateRoom'),
      (callback) =>
        ({ draft, newRoom }) =>
          isCreation(draft) ? callback(draft.sender, newRoom ?? [draft]) : 'allow',
    ),
    ...question(
      'checkRoomCreation',
      callbacks.rulesWith('checkRoomCreation'),
      (callback) =>
        ({ draft, newRoom }) =>
          isCreation(draft) ? callback(draft.sender, newRoom ?? [draft]) : 'allow',
    ),
    ...question(
      'mayInvite',
      callbacks.checkersWith('mayInvite'),
      (callback) =>
        ({ draft }) =>
          draft.stateKey !== undefined && membershipIn(draft) === 'invite'
            ? callback(draft.sender, draft.stateKey, draft.roomId)
            : 'allow',
    ),
    ...question(
      'mayJoinRoom',
      callbacks.checkersWith('mayJoinRoom'),
      (callback) =>
        ({ draft: { roomId, sender }, membership }) =>
          roomId === undefined || membership === undefined || membership === 'join'
            ? 'allow'
            : callback(sender, roomId, membership === 'invite'),
    ),
    ...question(
      'checkStateEvent',
      callbacks.checkersWith('checkStateEvent'),
      (callback) =>
        ({ draft, newRoom }) => {
          const { stateKey } = draft;
          const isAsked = stateKey !== undefined && newRoom === undefined && draft.type !== 'm.room.member';
          return isAsked ? callback({ ...draft, stateKey }) : 'allow';
        },
    ),
    ...question(
      'checkEvent',
      callbacks.checkersWith('checkEvent'),
      (callback) =>
        ({ draft }) =>
          callback(draft),
    ),
    ...question(
      'checkEventAllowed',
      callbacks.rulesWith('checkEventAllowed'),
      (callback) =>
        ({ draft, engine }) =>
          callback(draft, roomStateOf(engine, draft.roomId)),
    ),
  ];
}

/** Whether the event is the join, or a change of the profile, of a user in a room that exists. */
const isOwnJoin = (draft: EventToSend, newRoom: unknown) =>
  newRoom === undefined && draft.stateKey === draft.sender && membershipIn(draft) === 'join';

const membershipOf = async (engine: RoomReader, { sender }: EventToSend, roomId: string): Promise<string> =>
  (await engine.userRooms.of(sender)).get(roomId)?.membership ?? 'leave';

const isCreation = ({ type, stateKey }: EventDraft) => type === 'm.room.create' && stateKey === '';

const membershipIn = ({ type, content }: Pick<EventDraft, 'type' | 'content'>) =>
  type === 'm.room.member' ? content['membership'] : undefined;

const draftFor = (
  { type, stateKey, sender, content, redacts }: EventToSend,
  roomId: string | undefined,
): EventDraft => ({
  roomId,
  type,
  ...(stateKey !== undefined && { stateKey }),
  sender,
  content,
  ...(redacts !== undefined && { redacts }),
});
