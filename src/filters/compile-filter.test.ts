import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { cpuTime } from '../../test/support/clocks/cpu-time.ts';
import type { JsonObject } from '../protocol/index.ts';
import { compileFilter, compileRoomEventFilter } from './compile-filter.ts';
import { compileFields, splitPath } from './field-selection.ts';
import { anyPattern } from './text-list.ts';

const event = (type: string, sender = '@a:test', content: JsonObject = {}) => ({ type, sender, content });

describe('a filter', () => {
  it('passes all events when the filter is empty', () => {
    const filter = compileFilter({});
    assert.equal(filter.format, 'client');
    assert.equal(filter.selectFields, undefined);
    assert.equal(filter.room.includeLeave, false);
    assert.equal(filter.room.passesRoom('!a:test'), true);
    for (const part of [filter.presence, filter.accountData, filter.room.timeline, filter.room.ephemeral]) {
      assert.equal(part.limit, undefined);
      assert.equal(part.passesNothing, false);
      assert.equal(part.passes(event('m.any')), true);
    }
  });

  it('excludes events by not_types even if types contains their type, and matches wildcards', () => {
    const filter = compileRoomEventFilter({ types: ['m.room.*', 'm.sticker'], not_types: ['m.room.member'] });
    const passing = ['m.room.message', 'm.sticker'];
    const excludedTypes = ['m.room.member', 'm.reaction', 'xm.room.name', 'm.stickers'];
    for (const type of passing) assert.equal(filter.passes(event(type)) && filter.passesType(type), true);
    for (const type of excludedTypes)
      assert.equal(filter.passes(event(type)) || filter.passesType(type), false);
  });

  it('excludes events by not_senders even if senders contains their sender', () => {
    const filter = compileRoomEventFilter({ senders: ['@a:test', '@b:test'], not_senders: ['@b:test'] });
    assert.equal(filter.passes(event('m', '@a:test')), true);
    assert.equal(filter.passes(event('m', '@b:test')), false);
    assert.equal(filter.passes(event('m', '@c:test')), false);
    assert.equal(filter.passes({ type: 'm.typing' }), false);
    const notSendersOnly = compileRoomEventFilter({ not_senders: ['@b:test'] });
    assert.equal(notSendersOnly.passes({ type: 'm.typing' }), true);
  });

  it('selects rooms for the whole room filter and for each of its parts', () => {
    const { room } = compileFilter({
      room: { rooms: ['!a:test', '!b:test'], not_rooms: ['!b:test'], timeline: { not_rooms: ['!a:test'] } },
    });
    assert.deepEqual(['!a:test', '!b:test', '!c:test'].map(room.passesRoom), [true, false, false]);
    assert.equal(room.timeline.passesRoom('!a:test'), false);
    assert.equal(room.state.passesRoom('!a:test'), true);
  });

  it('selects events by contains_url: whether the content has the key url', () => {
    const image = event('m', '@a:test', { url: 'mxc://a/b' });
    const urlNotText = event('m', '@a:test', { url: 5 });
    const text = event('m');
    const withUrl = compileRoomEventFilter({ contains_url: true });
    assert.deepEqual(
      [image, urlNotText, text].map((e) => withUrl.passes(e)),
      [true, true, false],
    );
    const withoutUrl = compileRoomEventFilter({ contains_url: false });
    assert.deepEqual(
      [image, urlNotText, text].map((e) => withoutUrl.passes(e)),
      [false, false, true],
    );
  });

  it('selects by the type of the relation of an event, under the stable and the unstable names', () => {
    const related = (rel_type: unknown) => ({
      ...event('m.room.message'),
      content: { 'm.relates_to': { rel_type } } as JsonObject,
    });
    const events = [event('m.room.message'), related('m.thread'), related('m.annotation'), related(5)];
    for (const prefix of ['', 'org.matrix.msc3874.']) {
      const passing = (json: object) => {
        const names = Object.entries(json).map(([name, list]) => [prefix + name, list]);
        const filter = compileRoomEventFilter(Object.fromEntries(names));
        return events.map((one) => filter.passes(one));
      };
      assert.deepEqual(passing({ rel_types: ['m.thread', 'm.x'] }), [false, true, false, false]);
      assert.deepEqual(passing({ not_rel_types: ['m.thread'] }), [true, false, true, true]);
      assert.deepEqual(passing({ rel_types: [] }), [false, false, false, false]);
      assert.deepEqual(passing({ not_rel_types: [] }), [true, true, true, true]);
    }
    assert.throws(() => compileRoomEventFilter({ rel_types: 'm.thread' }), { errcode: 'M_BAD_JSON' });
  });

  it('returns event_format, include_leave, limit, and the members about lazy loading, threads and relations as they were given', () => {
    const { room, format } = compileFilter({
      event_format: 'federation',
      room: {
        include_leave: true,
        state: { lazy_load_members: true, include_redundant_members: true },
        timeline: {
          limit: 7,
          unread_thread_notifications: true,
          related_by_senders: ['@a:test'],
          related_by_rel_types: ['m.thread'],
        },
      },
    });
    assert.deepEqual([format, room.includeLeave, room.timeline.limit], ['federation', true, 7]);
    assert.deepEqual([room.state.lazyLoadMembers, room.state.includeRedundantMembers], [true, true]);
    assert.equal(room.timeline.threadCountsField, 'unread_thread_notifications');
    assert.deepEqual(room.timeline.relatedBy, { senders: ['@a:test'], relTypes: ['m.thread'] });
  });

  it('detects a filter that selects no event, by its types, its senders or its limit', () => {
    for (const json of [{ types: [] }, { senders: [] }, { limit: 0 }]) {
      assert.equal(compileRoomEventFilter(json).passesNothing, true);
    }
    assert.equal(compileRoomEventFilter({ types: [] }).passes(event('m')), false);
  });

  it('throws M_BAD_JSON for an invalid filter', () => {
    const invalidFilters = [
      null,
      [],
      'x',
      { presence: 'not an object' },
      { room: { timeline: 'not an object' } },
      { room: { timeline: { rooms: 'not a list' } } },
      { room: { timeline: { rooms: ['not a room'] } } },
      { room: { rooms: ['@a:test'] } },
      { room: { state: { senders: ['not a user'] } } },
      { room: { state: { types: [1] } } },
      { room: { timeline: { limit: -1 } } },
      { room: { timeline: { limit: 1.5 } } },
      { event_format: 'xml' },
      { event_fields: 'type' },
    ];
    for (const json of invalidFilters) assert.throws(() => compileFilter(json), { errcode: 'M_BAD_JSON' });
  });

  it('matches hostile patterns in linear time', () => {
    const matches = anyPattern([`${'*a'.repeat(10_000)}*b`]);
    const text = 'a'.repeat(60_000);
    const took = cpuTime(() => assert.equal(matches(text), false));
    assert.ok(took < 1000, `${took} ms`);
  });
});

describe('type patterns', () => {
  it('matches the same types by a pattern as by the equivalent regular expression', () => {
    const letters = fc.string({ unit: fc.constantFrom('a', 'b', '*', '.', '?'), maxLength: 8 });
    const plain = fc.string({ unit: fc.constantFrom('a', 'b', '.', '?'), maxLength: 12 });
    fc.assert(
      fc.property(letters, plain, (pattern, text) => {
        const source = pattern
          .split('*')
          .map((part) => part.replace(/[.?]/g, '\\$&'))
          .join('.*');
        assert.equal(anyPattern([pattern])(text), new RegExp(`^${source}$`, 's').test(text));
      }),
      { numRuns: 2000 },
    );
  });
});

describe('event_fields', () => {
  const message = {
    type: 'm.room.message',
    content: { body: 'hi', 'm.relates_to': { rel_type: 'm.thread' }, 'a\\b': 1, deep: { x: 1, y: 2 } },
    sender: '@a:test',
  };
  const select = (...paths: string[]) => JSON.parse(JSON.stringify(compileFields(paths)(message))) as unknown;

  it('keeps only the fields that event_fields names', () => {
    assert.deepEqual(select('type', 'content.body'), { type: message.type, content: { body: 'hi' } });
    assert.deepEqual(select('content.m\\.relates_to.rel_type'), {
      content: { 'm.relates_to': { rel_type: 'm.thread' } },
    });
    assert.deepEqual(select('content.a\\\\b'), { content: { 'a\\b': 1 } });
    assert.deepEqual(select('content.deep.x', 'content.deep'), { content: { deep: { x: 1, y: 2 } } });
    assert.deepEqual(select('content.deep', 'content.deep.x'), { content: { deep: { x: 1, y: 2 } } });
    assert.deepEqual(select('content.body.more', 'nothing', 'content.nothing', 'type.length'), {});
    assert.deepEqual(select(), {});
  });

  it('treats __proto__ in event_fields as an ordinary field, which changes no prototype', () => {
    const hostile = JSON.parse('{"content":{"__proto__":{"x":1}},"type":"m"}') as JsonObject;
    const selected = compileFields(['content.__proto__', '__proto__', 'constructor', 'type'])(hostile);
    assert.equal(JSON.stringify(selected), '{"content":{"__proto__":{"x":1}},"type":"m"}');
    assert.equal(({} as Record<string, unknown>)['x'], undefined);
  });

  it('splits the paths of event_fields at dots that are not escaped', () => {
    const escaped = (name: string) => name.replace(/[.\\]/g, '\\$&');
    fc.assert(
      fc.property(fc.array(fc.string(), { minLength: 1 }), (names) => {
        assert.deepEqual(splitPath(names.map(escaped).join('.')), names);
      }),
    );
    assert.deepEqual(splitPath('a\\x.b'), ['a\\x', 'b']);
  });

  it('keeps only fields of the event, with their values', () => {
    fc.assert(
      fc.property(fc.object({ maxDepth: 2 }), fc.array(fc.string(), { maxLength: 3 }), (object, extra) => {
        const json = JSON.parse(JSON.stringify(object)) as JsonObject;
        const names = [...Object.keys(json).slice(0, 1), ...extra].map((name) =>
          name.replace(/[.\\]/g, '\\$&'),
        );
        const selected = compileFields(names)(json);
        for (const [name, value] of Object.entries(selected)) assert.deepEqual(value, json[name]);
        const expected = Object.keys(json).filter((name) =>
          names.some((path) => splitPath(path)[0] === name),
        );
        assert.deepEqual(Object.keys(selected).sort(), expected.sort());
      }),
    );
  });
});
