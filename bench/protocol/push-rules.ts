/**
 * Measures the evaluation of push rules of 1,000 members for one message, compared with `JSON.stringify` of
 * the message.
 */
import {
  type CompiledRuleset,
  compileUserRules,
  evaluateRules,
  NO_USER_RULES,
  PushEvent,
  type PushMember,
  putRule,
  type UserPushRules,
} from '../../src/protocol/push-rules/index.ts';

const MEMBERS = 1_000;
const ROUNDS = 300;

const members: readonly PushMember[] = Array.from({ length: MEMBERS }, (_, i) => ({
  userId: `@member${i}:example.org`,
  displayName: `Member ${i}`,
}));
const message = {
  eventId: '$Rqnc-F-dvnEYJTyHq_iKxU2bZ1CI92-kuZq3a5lr5Zg',
  roomId: '!Nhcu5BS-UMnFX7hBVfVSoXiD7OgH6iRT-xyIuqDnpYQ',
  type: 'm.room.message',
  stateKey: undefined,
  sender: '@alice:example.org',
  content: {
    msgtype: 'm.text',
    body: 'A message of ordinary length, as people write them every day - with a dash and some cake.',
    'm.mentions': { user_ids: ['@member17:example.org'] },
  },
  originServerTs: 1_760_000_000_000,
  redacts: undefined,
};

/** Rules of an active user: ten keywords, fifty rooms without sound, fifty muted rooms. */
function activeUser(): UserPushRules {
  let rules = NO_USER_RULES;
  for (let i = 0; i < 10; i++) {
    rules = putRule(rules, 'content', `keyword${i}`, { actions: ['notify'], pattern: `keyword${i}` });
  }
  for (let i = 0; i < 50; i++) {
    const id = `!room${i}:example.org`;
    rules = putRule(rules, 'room', `!quiet${i}:example.org`, { actions: ['notify'] });
    rules = putRule(rules, 'override', id, {
      actions: [],
      conditions: [{ kind: 'event_match', key: 'room_id', pattern: id }],
    });
  }
  return rules;
}

/** Evaluates the rules of each member for the message. @returns how many members the message notifies */
function countNotified(rules: readonly CompiledRuleset[]): number {
  const event = new PushEvent(message, { memberCount: MEMBERS, senderMayNotify: () => false });
  let count = 0;
  for (const [i, member] of members.entries()) {
    if (evaluateRules(rules[i]!, event, member).notify) count++;
  }
  return count;
}

/**
 * Returns the microseconds of one call: the best of all rounds, so that other work on the machine has little
 * effect.
 */
function microseconds(work: () => unknown, calls: number): number {
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS; round++) {
    const start = performance.now();
    for (let call = 0; call < calls; call++) work();
    best = Math.min(best, ((performance.now() - start) / calls) * 1000);
  }
  return best;
}

const stringify = microseconds(() => JSON.stringify(message), 1000);

function print(name: string, micros: number): void {
  const times = (micros / stringify).toFixed(0);
  const perMember = ((micros / MEMBERS) * 1000).toFixed(0);
  console.log(
    `${name.padEnd(48)} ${micros.toFixed(1).padStart(9)} us ${perMember.padStart(6)} ns/member ${times.padStart(6)} x`,
  );
}

const defaults = compileUserRules(NO_USER_RULES);
const stored = activeUser();
const active = compileUserRules(stored);
const distributions: readonly [name: string, of: (i: number) => CompiledRuleset][] = [
  ['all members with default rules', () => defaults],
  ['one in ten members with 110 own rules', (i) => (i % 10 === 0 ? active : defaults)],
  ['all members with 110 own rules', () => active],
];

console.log(
  `One message, ${MEMBERS} members; ratios to JSON.stringify of the message (${stringify.toFixed(2)} us)`,
);
for (const [name, of] of distributions) {
  const rules = members.map((_, i) => of(i));
  print(
    name,
    microseconds(() => countNotified(rules), 1),
  );
}
const compiling = microseconds(() => compileUserRules(stored), 10);
console.log(`compiling the rules of one such user takes ${compiling.toFixed(1)} us`);
