import assert from 'node:assert/strict';
import { eventually } from '../clients/eventually.ts';
import { InteropSuite } from './interop-suite.ts';
import { enc, type Json } from './interop-user.ts';

InteropSuite.onSharedServers('profiles', (suite) => {
  suite.bothWays('returns remote profiles, and updates them in rooms', async ({ host, guest }) => {
    const room = await host.createRoomWith([guest]);
    const profile = { displayname: `New ${room}`, avatar_url: 'mxc://example.org/new' };
    for (const [field, value] of Object.entries(profile)) {
      await guest.do('PUT', `/profile/${enc(guest.id)}/${field}`, { [field]: value });
    }
    await eventually('the new profile in the room', async () => {
      const { displayname, avatar_url } = await host.member(room, guest);
      return displayname === profile.displayname && avatar_url === profile.avatar_url;
    });
    await eventually('the new profile', async () => {
      const { displayname, avatar_url } = await host.do('GET', `/profile/${enc(guest.id)}`);
      return displayname === profile.displayname && avatar_url === profile.avatar_url;
    });
  });

  suite.bothWays(
    'returns single fields of remote profiles',
    async ({ host, guest }) => {
      // The test uses a new user, because remote profiles are cached for some minutes.
      const name = guest === suite.onHearth.first ? 'fields-here' : 'fields-there';
      const { onHearth: hearthUser, onReference: referenceUser } = await suite.registerPair(name);
      const newUser = guest === suite.onHearth.first ? hearthUser : referenceUser;
      const fields = { 'm.tz': 'Europe/London', 'org.example.pets': { cats: 2, dogs: ['rex'] } };
      for (const [field, value] of Object.entries(fields)) {
        await newUser.do('PUT', `/profile/${enc(newUser.id)}/${field}`, { [field]: value });
      }
      for (const [field, value] of Object.entries(fields)) {
        const singleField = await host.do('GET', `/profile/${enc(newUser.id)}/${field}`);
        assert.deepEqual(singleField, { [field]: value });
      }
      const fullProfile = await host.do('GET', `/profile/${enc(newUser.id)}`);
      assert.deepEqual(fullProfile, { displayname: `profiles-${name}`, ...fields });
      const unknownUser = `@nobody:${guest.server.name}`;
      assert.equal((await host.call('GET', `/profile/${enc(unknownUser)}`)).status, 404);
    },
    { endsWithoutSharedRoom: true },
  );

  suite.bothWays('finds remote users in the user directory', async ({ host, guest }) => {
    const displayname = `Wanted ${guest.server.name.split(':')[1]}`;
    await guest.do('PUT', `/profile/${enc(guest.id)}/displayname`, { displayname });
    await host.createRoomWith([guest]);
    await eventually('the guest in the directory', async () => {
      const { results } = await host.do('POST', '/user_directory/search', { search_term: displayname });
      return (results as Json[]).some(({ user_id }) => user_id === guest.id);
    });
  });
});
