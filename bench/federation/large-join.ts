import { generateKeyPairSync, sign, verify } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { federatingHearth } from '../../test/clients/federating-hearths.ts';
import { ApiClient } from '../../test/processes/crash/api-client.ts';
import { makeTestAuthority } from '../../test/support/network/test-authority.ts';
import { inParallel } from '../load/parallel.ts';

/** Number of requests at the same time while the room is filled. */
const clients = 32;

/**
 * Joins a large room of another server, each server in its own process. Measures the time until the join is
 * answered and until all members are known, compared with the time to verify the members' signatures; and the
 * longest time that a request of another user of the joining server takes meanwhile.
 * @param members members before the join, with the owner
 * @param events joins and messages in the room
 */
export async function largeJoin(members: number, events: number): Promise<void> {
  const authority = makeTestAuthority();
  const [one, other] = await Promise.all([federatingHearth(authority), federatingHearth(authority)]);
  try {
    await Promise.all([one.start(), other.start()]);
    const owner = await ApiClient.register(one.url, 'owner');
    const { room_id: roomId } = await owner.request<{ room_id: string }>('POST', '/createRoom', {
      preset: 'public_chat',
    });
    await inParallel(members - 1, clients, async (index) => {
      const member = await ApiClient.register(one.url, `member-${index}`);
      await member.join(roomId);
    });
    await inParallel(events - members, clients, (index) =>
      owner.send(roomId, `message ${index}`, `t${index}`),
    );
    const guest = await ApiClient.register(other.url, 'guest');
    const otherUser = await ApiClient.register(other.url, 'bystander');
    let isOver = false;
    let longestRequest = 0;
    const measuringOtherUser = (async () => {
      while (!isOver) {
        const startedAt = performance.now();
        await otherUser.request('GET', '/account/whoami');
        longestRequest = Math.max(longestRequest, performance.now() - startedAt);
        await sleep(1);
      }
    })();
    const startedAt = performance.now();
    const via = owner.userId.slice(owner.userId.indexOf(':') + 1);
    await guest.request('POST', `/join/${encodeURIComponent(roomId)}?via=${encodeURIComponent(via)}`, {});
    const joined = performance.now() - startedAt;
    for (;;) {
      const path = `/rooms/${encodeURIComponent(roomId)}/joined_members`;
      const { joined: known } = await guest.request<{ joined: object }>('GET', path);
      if (Object.keys(known).length > members) break;
      await sleep(20);
    }
    const complete = performance.now() - startedAt;
    isOver = true;
    await measuringOtherUser;
    const signatures = millisecondsToVerify(members);
    const row = (what: string, time: number) =>
      console.log(
        `join of ${members} members, ${events} events: ${what}`.padEnd(60),
        `${time.toFixed(0)} ms`.padStart(10),
        `${(time / signatures).toFixed(2)} x signatures`.padStart(20),
      );
    row('answered', joined);
    row('all members known', complete);
    console.log(
      'longest request of another user meanwhile'.padEnd(60),
      `${longestRequest.toFixed(0)} ms`.padStart(10),
    );
  } finally {
    await Promise.all([one.remove(), other.remove()]);
    authority.remove();
  }
}

/** Returns the milliseconds to verify `count` signatures on one thread. */
function millisecondsToVerify(count: number): number {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const text = Buffer.alloc(600, 'x');
  const signature = sign(null, text, privateKey);
  const startedAt = performance.now();
  for (let n = 0; n < count; n++) verify(null, text, publicKey, signature);
  return performance.now() - startedAt;
}
