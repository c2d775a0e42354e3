import assert from 'node:assert/strict';
import { eventually } from '../clients/eventually.ts';
import { Meeting } from './meeting.ts';
import { enc, type Json } from './someone.ts';

Meeting.of('profiles', (meeting) => {
  meeting.bothWays('profiles are looked up, and new ones reach rooms', async ({ host, guest }) => {
    const room = await host.roomWith([guest]);
    const profile = { displayname: `New ${room}`, avatar_url: 'mxc://example.org/new' };
    for (const [field, value] of Object.entries(profile)) {
      await guest.do('PUT', `/profile/${enc(guest.id)}/${field}`, { [field]: value });
    }
    await eventually('the new profile in the room', async () => {
      const { displayname, avatar_url } = await host.member(room, guest);
      return displayname === profile.displayname && avatar_url === profile.avatar_url;
    });
    await eventually('the new name in the profile', async () => {
      const { displayname, avatar_url } = await host.do('GET', `/profile/${enc(guest.id)}`);
      return displayname === profile.displayname && avatar_url === profile.avatar_url;
    });
  });

  meeting.bothWays(
    'fields of profiles are looked up',
    async ({ host, guest }) => {
      // Nobody has asked for the profile of this one before: what was said of one holds for some minutes.
      const name = guest === meeting.here.one ? 'fields-here' : 'fields-there';
      const { here, there } = await meeting.newcomers(name);
      const newcomer = guest === meeting.here.one ? here : there;
      const fields = { 'm.tz': 'Europe/London', 'org.example.pets': { cats: 2, dogs: ['rex'] } };
      for (const [field, value] of Object.entries(fields)) {
        await newcomer.do('PUT', `/profile/${enc(newcomer.id)}/${field}`, { [field]: value });
      }
      for (const [field, value] of Object.entries(fields)) {
        const found = await host.do('GET', `/profile/${enc(newcomer.id)}/${field}`);
        assert.deepEqual(found, { [field]: value });
      }
      const whole = await host.do('GET', `/profile/${enc(newcomer.id)}`);
      assert.deepEqual(whole, { displayname: `profiles-${name}`, ...fields });
      const nobody = `@nobody:${guest.server.name}`;
      assert.equal((await host.call('GET', `/profile/${enc(nobody)}`)).status, 404);
    },
    { endsApart: true },
  );

  meeting.bothWays('people are found in the directory of users', async ({ host, guest }) => {
    const displayname = `Wanted ${guest.server.name.split(':')[1]}`;
    await guest.do('PUT', `/profile/${enc(guest.id)}/displayname`, { displayname });
    await host.roomWith([guest]);
    await eventually('the guest in the directory', async () => {
      const { results } = await host.do('POST', '/user_directory/search', { search_term: displayname });
      return (results as Json[]).some(({ user_id }) => user_id === guest.id);
    });
  });
});
