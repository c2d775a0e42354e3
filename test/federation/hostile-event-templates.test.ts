import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import type { JsonObject } from '../../src/protocol/index.ts';
import { unhurriedClock } from '../support/clocks/unhurried-clock.ts';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import { withoutRetries } from '../support/other-servers/several-servers.ts';
import { enc } from '../support/users/test-client.ts';
import { falseTemplates } from './false-event-templates.ts';
import { HostileServer } from './hostile-server.ts';

const v1 = '/_matrix/federation/v1';
const v2 = '/_matrix/federation/v2';

/** Templates that are false for knocks and leaves. The one with the membership join would be correct for a join. */
const falseKnockAndLeaveTemplates: typeof falseTemplates = [
  ...falseTemplates,
  ['with the membership join', (event) => ({ ...event, content: { membership: 'join' } })],
  ['without content', ({ content: _content, ...event }) => event],
];

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('hostile event templates of make_knock and make_leave', () => {
    const hostile = new HostileServer(kind, { ...withoutRetries, clock: unhurriedClock });

    /**
     * Answers make requests with templates that `change` has modified and that have content that was not requested.
     */
    const answerMakeRequests = (membership: string, change = (event: JsonObject) => event) =>
      hostile.evil.on(`GET ${v1}/make_${membership}/`, () => {
        const template = hostile.room.membershipTemplate(hostile.anna.id, membership, {
          displayname: 'Fool',
          evil: true,
        });
        return { ...template, event: change(template['event'] as JsonObject) };
      });
    const sent = (membership: string) =>
      hostile.evil.receivedRequests.filter(({ path }) => path.includes(`/send_${membership}/`));

    describe('a knock with a hostile event template', () => {
      const knock = () =>
        hostile.anna.call('POST', `/knock/${enc(hostile.room.roomId)}`, {}, { via: 'evil.test' });
      const isShown = async () =>
        (await hostile.anna.sync()).rooms?.knock?.[hostile.room.roomId] !== undefined;
      beforeEach(() => {
        hostile.room.setState('m.room.join_rules', { join_rule: 'knock' });
        hostile.evil.on(`PUT ${v1}/send_knock/`, () => ({ knock_room_state: [] }));
      });

      for (const [what, change] of falseKnockAndLeaveTemplates) {
        it(`fails a knock without signing anything for a template ${what}`, async () => {
          answerMakeRequests('knock', change);
          const { status, body } = await knock();
          assert.deepEqual([status, body['errcode']], [502, 'M_UNKNOWN'], JSON.stringify(body));
          assert.deepEqual(sent('knock'), []);
          assert.equal(await isShown(), false);
        });
      }

      it('signs a knock without the additional content of the template', async () => {
        answerMakeRequests('knock');
        const { status, raw } = await knock();
        assert.equal(status, 200, raw);
        assert.deepEqual(sent('knock')[0]?.body['content'], { membership: 'knock', displayname: 'anna' });
        assert.equal(await isShown(), true);
      });
    });

    describe('the rejection of an invite with a hostile event template', () => {
      const isShown = async () =>
        (await hostile.anna.sync()).rooms?.invite?.[hostile.room.roomId] !== undefined;
      beforeEach(async () => {
        hostile.evil.on(`PUT ${v2}/send_leave/`, () => ({}));
        const draft = { type: 'm.room.member', sender: hostile.room.creator, stateKey: hostile.anna.id };
        const { eventId, pdu } = hostile.room.build({ ...draft, content: { membership: 'invite' } }).event;
        const strippedState = [...hostile.room.state.values()].map(({ event }) => event.pdu);
        const path = `${v2}/invite/${enc(hostile.room.roomId)}/${enc(eventId)}`;
        const body = { room_version: '11', event: pdu, invite_room_state: strippedState };
        assert.equal((await hostile.evil.request('a.test', 'PUT', path, body)).status, 200);
        assert.equal(await isShown(), true);
      });

      for (const [what, change] of falseKnockAndLeaveTemplates) {
        it(`ends the invite locally without signing anything for a template ${what}`, async () => {
          answerMakeRequests('leave', change);
          await hostile.anna.leave(hostile.room.roomId);
          assert.ok(hostile.evil.receivedRequests.some(({ path }) => path.includes('/make_leave/')));
          assert.deepEqual(sent('leave'), []);
          assert.equal(await isShown(), false);
        });
      }

      it('signs a leave without the additional content of the template', async () => {
        answerMakeRequests('leave');
        await hostile.anna.leave(hostile.room.roomId);
        const { body } = sent('leave')[0]!;
        assert.deepEqual(
          [body['content'], body['sender'], body['state_key'], body['room_id']],
          [{ membership: 'leave' }, hostile.anna.id, hostile.anna.id, hostile.room.roomId],
        );
        assert.equal(await isShown(), false);
      });
    });
  });
});
