import fc from 'fast-check';
import { enc, type TestClient } from './test-client.ts';

export const userNames = ['anna', 'ben', 'cleo'];

/**
 * Actions by users with and without the necessary power: a refused action changes nothing. An action that occurs
 * several times is chosen more often.
 */
const actions = [
  'say',
  'say',
  'say',
  'topic',
  'name',
  'nick',
  'join',
  'join',
  'leave',
  'invite',
  'kick',
  'ban',
  'unban',
  'knock',
  'redact',
  'forget',
  'visibility',
] as const;

/** An action of one user, for some actions on another. Users and room are indexes into the lists of `runStep`. */
export interface Step {
  readonly actor: number;
  readonly target: number;
  readonly room: number;
  readonly action: (typeof actions)[number];
  /** Bit mask of the clients that sync after the step. */
  readonly syncMask: number;
}

/** Generates sequences of steps. @param clients how many clients there are */
export const randomSteps = (clients: number): fc.Arbitrary<Step[]> =>
  fc.array(
    fc.record({
      actor: fc.nat(userNames.length - 1),
      target: fc.nat(userNames.length - 1),
      room: fc.nat(1),
      action: fc.constantFrom(...actions),
      syncMask: fc.nat(2 ** clients - 1),
    }),
    { minLength: 5, maxLength: 25 },
  );

/** Makes a public room with low power level requirements, and a private room that users can knock on. */
export async function createRooms(host: TestClient): Promise<string[]> {
  return [
    await host.createRoom({
      preset: 'public_chat',
      power_level_content_override: { users_default: 40, state_default: 40, kick: 40, invite: 0 },
    }),
    await host.createRoom({
      preset: 'private_chat',
      initial_state: [{ type: 'm.room.join_rules', content: { join_rule: 'knock' } }],
    }),
  ];
}

/** Leaves and forgets the rooms, so that the next run does not sync them. */
export async function leaveRooms(users: readonly TestClient[], rooms: readonly string[]): Promise<void> {
  for (const user of users) {
    for (const roomId of rooms) {
      await user.call('POST', `/rooms/${enc(roomId)}/leave`, {});
      await user.call('POST', `/rooms/${enc(roomId)}/forget`, {});
    }
  }
}

let transactions = 0;

/** Runs a step. @param sentIds event ids of the messages so far */
export async function runStep(
  users: readonly TestClient[],
  rooms: readonly string[],
  sentIds: string[],
  step: Step,
): Promise<void> {
  const actor = users[step.actor]!;
  const target = users[step.target]!;
  const roomId = rooms[step.room]!;
  const path = `/rooms/${enc(roomId)}`;
  const word = `${step.action} ${sentIds.length}`;
  const transaction = `transaction${transactions++}`;
  const put = (type: string, content: object, key = '') =>
    actor.call('PUT', `${path}/state/${type}/${enc(key)}`, content);
  switch (step.action) {
    case 'say': {
      const answer = await actor.call('PUT', `${path}/send/m.room.message/${transaction}`, {
        body: word,
        msgtype: 'm.text',
      });
      if (answer.status === 200) sentIds.push(String(answer.body['event_id']));
      return;
    }
    case 'redact':
      await actor.call('PUT', `${path}/redact/${enc(sentIds.at(-1) ?? '$none')}/${transaction}`, {});
      return;
    case 'topic':
    case 'name':
      await put(`m.room.${step.action}`, { [step.action]: word + transaction });
      return;
    case 'visibility':
      await put('m.room.history_visibility', {
        history_visibility: ['joined', 'shared', 'invited'][step.target],
      });
      return;
    case 'nick':
      await put('m.room.member', { membership: 'join', displayname: word + transaction }, actor.id);
      return;
    case 'knock':
      await actor.call('POST', `/knock/${enc(roomId)}`, {});
      return;
    case 'join':
    case 'leave':
    case 'forget':
      await actor.call('POST', `${path}/${step.action}`, {});
      return;
    default:
      await actor.call('POST', `${path}/${step.action}`, { user_id: target.id });
  }
}
