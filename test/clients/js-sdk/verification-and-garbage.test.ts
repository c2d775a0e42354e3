import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { after, before, test } from '../bounded-test.ts';
import { eventually } from '../eventually.ts';
import { type ServerUnderTest, serverUnderTest } from '../server-under-test.ts';
import { createEncryptedRoom } from './encrypted-room.ts';
import { EncryptedSession } from './encrypted-session.ts';
import { compareEmojis, nextVerificationRequest } from './verification.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

let server: ServerUnderTest;
let alice: EncryptedSession;
let bob: EncryptedSession;
before(async () => {
  server = await serverUnderTest();
  alice = await EncryptedSession.withCrossSigning(server.url, 'alice');
  bob = await EncryptedSession.withCrossSigning(server.url, 'bob');
});
after(async () => {
  for (const session of [alice, bob]) session?.stop();
  await server?.stop();
});

test('completes a verification while garbage is collected', async () => {
  const room = await createEncryptedRoom([alice, bob]);
  let outcome: unknown;
  const verify = async () => {
    const received = nextVerificationRequest(bob);
    const sent = await alice.crypto.requestVerificationDM(bob.userId, room);
    await compareEmojis(sent, await received);
  };
  // No variable of this function refers to the verification, so that garbage collection could remove it.
  verify().then(
    () => (outcome = 'done'),
    (error: unknown) => (outcome = error),
  );
  const timer = setInterval(collectGarbage, 20);
  try {
    await eventually('the verification to end', () => outcome !== undefined);
  } finally {
    clearInterval(timer);
  }
  if (outcome !== 'done') throw outcome;
});
