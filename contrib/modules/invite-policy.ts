/**
 * An example of a module: users may invite only users of the configured servers; server administrators may invite any user.
 * A room may forbid invites with the state event `org.example.invites` (`{"allowed": false}`).
 *
 *     modules:
 *       - module: ./contrib/modules/invite-policy.ts
 *         config:
 *           servers: [example.org, partner.example.com]
 */
import type { Module } from 'hearth/module';

interface Config {
  /** Servers whose users may be invited. */
  readonly servers: readonly string[];
}

const policyType = 'org.example.invites';

const limitInvites: Module<Config> = ({ servers }, api) => {
  if (!Array.isArray(servers)) throw new TypeError('servers must be a list of server names');
  const allowed = new Set(servers);

  api.registerSpamChecker({
    async mayInvite(inviter, invitee) {
      const server = invitee.slice(invitee.indexOf(':') + 1);
      if (allowed.has(server) || (await api.users.get(inviter))?.isAdmin === true) return 'allow';
      return { errcode: 'M_FORBIDDEN', error: `Users of ${server} cannot be invited from this server` };
    },
  });

  api.registerEventRules({
    async checkEventAllowed({ type, content }, state) {
      if (type !== 'm.room.member' || content['membership'] !== 'invite') return 'allow';
      const policy = await state.get(policyType, '');
      if (policy?.content['allowed'] !== false) return 'allow';
      return { errcode: 'M_FORBIDDEN', error: 'Invites to this room are closed' };
    },
  });
};

export default limitInvites;
