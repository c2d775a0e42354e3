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

/**
 * Opens a fetcher of keys, over a network where only `live.example` and `live.notary` respond. Requests to other servers
 * wait until `releaseOthers` is called, and then fail.
 * @param notaries names of notaries; `live.notary` has the keys of `live.example` only
 */
function open(notaries: readonly string[] = []) {
  const clock = manualClock();
  const caches = plainCaches(clock);
  let held = Promise.withResolvers<void>();
  const requestedServers: string[] = [];
  const saved: string[] = [];
  const request = async ({ destination }: { destination: string }): Promise<JsonObject> => {
    requestedServers.push(destination);
    if (!destination.startsWith('live.')) {
      await held.promise;
      throw new Error('no response');
    }
    const keys = { server_name: 'live.example', valid_until_ts: clock.now() + 1_000, old_verify_keys: {} };
    const response = signJson(
      { ...keys, verify_keys: { [key.keyId]: { key: key.publicKey.base64 } } },
      'live.example',
      key,
    );
    return destination === 'live.notary' ? { server_keys: [response] } : response;
  };
  const fetcher = new KeyFetcher({
    caches,
    clock,
    log: silentLogger,
    notaries: notaries.map((server_name) => ({
      server_name,
      verify_keys: null,
      accept_keys_insecurely: false,
    })),
    requests: { request } as unknown as FederationClient,
    save: async ({ serverName }) => void saved.push(serverName),
  });
  const releaseOthers = () => held.resolve();
  const holdOthers = () => {
    held = Promise.withResolvers<void>();
  };
  return { clock, caches, fetcher, releaseOthers, holdOthers, requestedServers, saved };
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise(setImmediate);
}

const wanted = (serverName: string) => ({ serverName, keyId: key.keyId, validUntil: 0 });

it('KeyFetcher fetches a key for a request at once while the same key for events waits behind keys of servers that do not respond', async () => {
  const { caches, fetcher, releaseOthers, requestedServers, saved } = open();
  try {
    const dead = Array.from({ length: 40 }, (_, index) => `dead${index}.example`);
    const forEvents = fetcher.fetch([...dead, 'live.example'].map(wanted), 'events');
    await new Promise(setImmediate);
    assert.equal(requestedServers.length, 32, 'the other servers wait');
    await fetcher.fetch([wanted('live.example')], 'request');
    assert.deepEqual(saved, ['live.example']);
    assert.equal(requestedServers.length, 33);
    releaseOthers();
    await forEvents;
  } finally {
    releaseOthers();
    caches.close();
  }
});

it('KeyFetcher shares a running request to a server among callers with different purposes', async () => {
  const { caches, fetcher, requestedServers, saved } = open();
  try {
    await Promise.all(
      (['events', 'request', 'notary'] as const).map((purpose) =>
        fetcher.fetch([wanted('live.example')], purpose),
      ),
    );
    assert.deepEqual([requestedServers, saved], [['live.example'], ['live.example']]);
  } finally {
    caches.close();
  }
});

it('KeyFetcher waits for no slot when a request to the owner of the keys is running, and requests nothing from notaries when the owner sends all keys', async () => {
  const { caches, fetcher, releaseOthers, requestedServers } = open(['live.notary']);
  try {
    const ofDead = Array.from({ length: 64 }, (_, index) =>
      fetcher.fetch([wanted(`${index}.example`)], 'request'),
    );
    await new Promise(setImmediate);
    const forNotary = fetcher.fetch([wanted('live.example')], 'notary');
    await fetcher.fetch([wanted('live.example')], 'request');
    await forNotary;
    assert.equal(requestedServers.includes('live.notary'), false);
    releaseOthers();
    await Promise.all(ofDead);
  } finally {
    releaseOthers();
    caches.close();
  }
});

it('KeyFetcher does not wait for a slow notary when another notary has all requested keys except those that both notaries lacked recently', async () => {
  const network = open(['live.notary', 'slow.notary']);
  const { clock, caches, fetcher, releaseOthers, holdOthers, requestedServers } = network;
  try {
    const first = fetcher.fetch([wanted('gone.example')], 'events');
    await new Promise(setImmediate);
    releaseOthers();
    await first;
    clock.advance(200_000);
    holdOthers();
    requestedServers.length = 0;
    // The key that the notaries lack is requested from its owner again, which responds with an error.
    const second = fetcher.fetch([wanted('gone.example'), wanted('live.example')], 'events');
    await until(() => requestedServers.includes('gone.example'));
    releaseOthers();
    await second;
    assert.deepEqual(requestedServers, ['live.notary', 'slow.notary', 'gone.example']);
    // Five minutes after the first request, the missing key is requested from the notaries again.
    clock.advance(100_000);
    requestedServers.length = 0;
    await fetcher.fetch([wanted('gone.example')], 'events');
    assert.deepEqual(requestedServers.slice(0, 2), ['live.notary', 'slow.notary']);
  } finally {
    releaseOthers();
    caches.close();
  }
});
