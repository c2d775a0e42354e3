import assert from 'node:assert/strict';
import { generateKeyPairSync, verify } from 'node:crypto';
import { test } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { BackgroundSigner } from './index.ts';

test('BackgroundSigner returns the signatures in the order of the texts, for few and many texts', async () => {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const signer = new BackgroundSigner(privateKey);
  const check = async (count: number) => {
    const texts = Array.from({ length: count }, (_, index) => `text ${index} of ${count}: ü`);
    const signatures = await signer.sign(texts);
    assert.equal(signatures.length, count);
    for (const [index, text] of texts.entries()) {
      const bytes = Buffer.from(signatures[index] ?? '', 'base64');
      assert.ok(verify(null, Buffer.from(text), publicKey, bytes), text);
      assert.doesNotMatch(signatures[index] ?? '', /=/);
    }
  };
  await Promise.all([0, 1, 2, 3, 50, 5, 200].map(check));
  signer.close();
  await check(10);
  signer.close();
});

test('BackgroundSigner.poll takes finished signatures in the middle of a turn of the event loop', async () => {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const signer = new BackgroundSigner(privateKey);
  const texts = Array.from({ length: 10 }, (_, index) => `text ${index}`);
  // Starts the thread.
  await signer.sign(texts);
  let turnIsOver = false;
  setImmediate(() => {
    turnIsOver = true;
  });
  let signatures: readonly string[] | undefined;
  void signer.sign(texts).then((finished) => {
    signatures = finished;
  });
  const moment = new Int32Array(new SharedArrayBuffer(4));
  for (let waited = 0; !signatures && waited < 60_000; waited += 1) {
    Atomics.wait(moment, 0, 0, 1);
    signer.poll();
    await Promise.resolve();
  }
  assert.equal(turnIsOver, false);
  assert.equal(signatures?.length, texts.length);
  for (const [index, text] of texts.entries())
    assert.ok(verify(null, Buffer.from(text), publicKey, Buffer.from(signatures[index]!, 'base64')));
  signer.poll();
  signer.close();
});

test('BackgroundSigner.close rejects waiting requests, and the next request starts another thread', async () => {
  const { privateKey } = generateKeyPairSync('ed25519');
  const signer = new BackgroundSigner(privateKey);
  const texts = Array.from({ length: 2_000 }, (_, index) => `text ${index}`);
  const waiting = assert.rejects(signer.sign(texts), /has ended/);
  signer.close();
  await waiting;
  assert.equal((await signer.sign(texts.slice(0, 5))).length, 5);
  signer.close();
});

test('BackgroundSigner releases its thread after 30 seconds without a request, and signs again afterwards', async () => {
  const { privateKey } = generateKeyPairSync('ed25519');
  const clock = manualClock();
  const signer = new BackgroundSigner(privateKey, clock);
  const texts = Array.from({ length: 5 }, (_, index) => `text ${index}`);
  await signer.sign(texts);
  assert.equal(signer.hasThread, true);
  clock.advance(20_000);
  await signer.sign(texts);
  clock.advance(10_000);
  assert.equal(signer.hasThread, true);
  clock.advance(30_000);
  assert.equal(signer.hasThread, false);
  assert.equal((await signer.sign(texts)).length, 5);
  signer.close();
});
