import assert from 'node:assert/strict';
import { it } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { newSigningKey } from '../../../test/support/inputs/signing-key.ts';
import { plainCaches } from '../../../test/support/servers/caches.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import { type JsonObject, signJson } from '../../protocol/index.ts';
import type { FederationClient } from '../requests/federation-client.ts';
import { KeyFetcher } from './key-fetcher.ts';

const key = newSigningKey('a');

/** A fetcher of keys, over a network where only `live.example` responds until `releaseOthers` is called. */
function open() {
  const clock = manualClock();
  const caches = plainCaches(clock);
  const { promise: released, resolve: releaseOthers } = Promise.withResolvers<void>();
  const asked: string[] = [];
  const saved: string[] = [];
  const request = async ({ destination }: { destination: string }): Promise<JsonObject> => {
    asked.push(destination);
    if (destination !== 'live.example') {
      await released;
      throw new Error('no response');
    }
    const keys = { server_name: destination, valid_until_ts: clock.now() + 1_000, old_verify_keys: {} };
    return signJson(
      { ...keys, verify_keys: { [key.keyId]: { key: key.publicKey.base64 } } },
      destination,
      key,
    );
  };
  const fetcher = new KeyFetcher({
    caches,
    clock,
    log: silentLogger,
    notaries: [],
    requests: { request } as unknown as FederationClient,
    save: async ({ serverName }) => void saved.push(serverName),
  });
  return { caches, fetcher, releaseOthers, asked, saved };
}

const wanted = (serverName: string) => ({ serverName, keyId: key.keyId, validUntil: 0 });

it('KeyFetcher fetches the keys for a request while events of the same server wait behind events of servers that do not respond', async () => {
  const { caches, fetcher, releaseOthers, asked, saved } = open();
  try {
    const dead = Array.from({ length: 40 }, (_, index) => `dead${index}.example`);
    const forEvents = fetcher.fetch([...dead, 'live.example'].map(wanted), 'events');
    await new Promise(setImmediate);
    assert.equal(asked.length, 32, 'the other servers wait');
    await fetcher.fetch([wanted('live.example')], 'request');
    assert.deepEqual(saved, ['live.example']);
    assert.equal(asked.length, 33);
    releaseOthers();
    await forEvents;
  } finally {
    releaseOthers();
    caches.close();
  }
});

it('KeyFetcher shares a running request to a server among callers of different purposes', async () => {
  const { caches, fetcher, asked, saved } = open();
  try {
    await Promise.all(
      (['events', 'request', 'notary'] as const).map((purpose) =>
        fetcher.fetch([wanted('live.example')], purpose),
      ),
    );
    assert.deepEqual([asked, saved], [['live.example'], ['live.example']]);
  } finally {
    caches.close();
  }
});
