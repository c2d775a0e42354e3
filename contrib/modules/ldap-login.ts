/**
 * An example of a module: users log in with their passwords of an LDAP directory. The first login creates the account, with
 * the display name in the directory. Needs the package `ldapts` beside the module: `npm install ldapts`.
 *
 *     modules:
 *       - module: ./contrib/modules/ldap-login.ts
 *         config:
 *           url: ldaps://directory.example.org
 *           base: ou=people,dc=example,dc=org
 *           bind_dn: cn=hearth,dc=example,dc=org
 *           bind_password: secret
 */
import type { Module } from 'hearth/module';
import { AndFilter, Client, EqualityFilter, FilterParser, InvalidCredentialsError } from 'ldapts';

interface Config {
  /** `ldaps://…`; `ldap://…` sends passwords without encryption unless `start_tls` is set. */
  readonly url: string;
  readonly start_tls?: boolean;
  /** The entry below which the users are. */
  readonly base: string;
  /** The DN that the search for users binds as, with `bind_password`; absent: the search is anonymous. */
  readonly bind_dn?: string;
  readonly bind_password?: string;
  /** The attribute with the localpart of the user id; `uid` when absent. */
  readonly uid?: string;
  /** The attribute with the display name; `cn` when absent. */
  readonly name?: string;
  /** Further condition for users, for instance `(memberOf=cn=chat,dc=example,dc=org)`. */
  readonly filter?: string;
}

/** Milliseconds for each request to the directory. */
const timeout = 4_000;

interface FoundUser {
  readonly dn: string;
  readonly displayName: string | undefined;
}

const ldapLogin: Module<Config> = (config, api) => {
  const { url, base, bind_dn, bind_password, uid = 'uid', name = 'cn', filter, start_tls } = config;
  if (typeof url !== 'string' || typeof base !== 'string') throw new TypeError('url and base must be texts');
  const condition = filter === undefined ? [] : [FilterParser.parseString(filter)];

  /** Opens a connection to the directory, runs `work` with it, and closes it. */
  const connected = async <T>(work: (client: Client) => Promise<T>): Promise<T> => {
    const client = new Client({ url, timeout, connectTimeout: timeout });
    try {
      if (start_tls) await client.startTLS();
      return await work(client);
    } finally {
      await client.unbind().catch(() => {});
    }
  };

  /** Returns the user with a localpart; `undefined` when the directory has none, or more than one. */
  const find = (localpart: string): Promise<FoundUser | undefined> =>
    connected(async (client) => {
      if (bind_dn !== undefined) await client.bind(bind_dn, bind_password ?? '');
      const isUser = new EqualityFilter({ attribute: uid, value: localpart });
      const { searchEntries } = await client.search(base, {
        filter: new AndFilter({ filters: [isUser, ...condition] }),
        attributes: [name],
        sizeLimit: 2,
      });
      const [entry, other] = searchEntries;
      if (entry === undefined || other !== undefined) return undefined;
      const displayName = [entry[name]].flat()[0];
      return { dn: entry.dn, displayName: displayName === undefined ? undefined : String(displayName) };
    });

  const hasPassword = (dn: string, password: string): Promise<boolean> =>
    connected(async (client) => {
      try {
        await client.bind(dn, password);
        return true;
      } catch (error) {
        if (error instanceof InvalidCredentialsError) return false;
        throw error;
      }
    });

  api.registerPasswordProvider({
    loginTypes: { 'm.login.password': ['password'] },
    async authenticate({ userId, fields }) {
      const { password = '' } = fields;
      const localpart = userId.slice(1, userId.indexOf(':'));
      // A directory accepts an empty password as an anonymous login.
      if (password === '' || userId !== `@${localpart}:${api.serverName}`) return undefined;
      const user = await find(localpart);
      if (user === undefined || !(await hasPassword(user.dn, password))) return undefined;
      if ((await api.users.get(userId)) === undefined) {
        const { displayName } = user;
        await api.users.register(localpart, displayName === undefined ? {} : { displayName });
        api.log.info('Created the account of a user of the directory', { userId });
      }
      return userId;
    },
  });
};

export default ldapLogin;
