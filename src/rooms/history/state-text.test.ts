import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { SharedText } from './shared-text.ts';
import { StateTextBuilder } from './state-text.ts';

describe('StateText', () => {
  it('is the JSON of all events with their ages, for any content, number of events and time', () => {
    const contents = fc.array(fc.record({ body: fc.string({ unit: 'grapheme' }), ts: fc.maxSafeInteger() }));
    fc.assert(
      fc.property(contents, fc.maxSafeNat(), (events, now) => {
        const builder = new StateTextBuilder();
        builder.add('[');
        for (const [index, { body, ts }] of events.entries()) {
          const text = new SharedText({ content: { body }, unsigned: { x: 1 } }, ts, undefined);
          builder.addEvent(text, index === 0 ? '{"n":0,' : `,{"n":${index},`);
        }
        builder.add(']');
        const expected = events.map(({ body, ts }, n) => {
          const age = Math.min(Math.max(0, now - ts), Number.MAX_SAFE_INTEGER);
          return { n, content: { body }, unsigned: { age, x: 1 } };
        });
        assert.deepEqual(JSON.parse(builder.finish().at(now).toString()), expected);
      }),
    );
  });

  it('ends each chunk with the event that fills 64 KiB, and counts the bytes of all chunks', () => {
    const builder = new StateTextBuilder();
    const text = new SharedText({ content: { body: 'ü'.repeat(10_000) } }, 0, undefined);
    builder.add('[');
    for (let index = 0; index < 20; index++) builder.addEvent(text, index === 0 ? '{' : ',{');
    builder.add(']');
    const stateText = builder.finish();
    const { chunks, length } = stateText.at(5);
    assert.ok(chunks.length > 1);
    assert.ok(chunks.slice(0, -1).every((chunk) => chunk.length >= 65_536));
    assert.ok(chunks.every((chunk) => chunk.length < 90_000));
    assert.ok(stateText.bytes > length, `${stateText.bytes} bytes for ${length}`);
    assert.equal((JSON.parse(stateText.at(5).toString()) as unknown[]).length, 20);
  });

  it('computes the age of an event for each response, and does not change earlier responses', () => {
    const builder = new StateTextBuilder();
    builder.addEvent(new SharedText({ type: 'm.room.name' }, 1_000, undefined), '{');
    const stateText = builder.finish();
    const ageOf = (text: object) => (JSON.parse(String(text)) as { unsigned: { age: number } }).unsigned.age;
    const [first, second] = [stateText.at(1_234_567), stateText.at(1_001)];
    assert.deepEqual([ageOf(first), ageOf(second)], [1_233_567, 1]);
  });
});
