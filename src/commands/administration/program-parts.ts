import { type Command, InvalidArgumentError } from 'commander';
import { ownCommand } from '../../kernel/process/index.ts';
import type { CommandContext } from '../command-context.ts';
import type { LoginFlags } from './login.ts';
import type { DeleteMediaFlags, MediaSelection } from './media-commands.ts';
import type { DeleteRoomFlags, PurgeHistoryFlags, RoomListFlags } from './room-commands.ts';
import type { AdministrationFlags } from './server-choice.ts';
import type { TokenLimits } from './token-commands.ts';
import type { CreateUserFlags, PasswordFlags, UserListFlags } from './user-commands.ts';

/** The functions and the context that the parts of the program use to add commands. */
export interface ProgramTools {
  /** Adds a command to the program, or to a group of commands. */
  readonly addCommand: (program: Command, name: string) => Command;
  /** Adds the option `-c` with the paths of the configuration. */
  readonly withConfig: (command: Command) => Command;
  /** Given to the commands as the member `context` of their flags. */
  readonly context: CommandContext;
}

const addressHelp = `
The command uses the server of --server; without this option, the server of the configuration (-c); without a
configuration, the only server with a stored login. Without a login, a command at a terminal asks for the name and the
password of an administrator; see ${ownCommand} login --help.`;

/** Adds the commands that use the admin API of a running server. @param media the group of commands about media */
export function addAdministration(program: Command, media: Command, tools: ProgramTools): void {
  addLogins(program, tools);
  addUsers(program, tools);
  addRooms(program, tools);
  addMedia(media, tools);
  addTokens(program, tools);
}

/** Adds a command with the options that all commands of the admin API have. */
function add(parent: Command, name: string, { addCommand, withConfig, context }: ProgramTools): Command {
  return withConfig(addCommand(parent, name))
    .setOptionValue('context', context)
    .option('--server <url>', 'the URL of the server, or unix: and the path of a socket')
    .option(
      '--token-file <path>',
      'a file with the access token of an administrator, used instead of a login',
    )
    .option('--json', 'print JSON, for scripts');
}

const yes = ['-y, --yes', 'do not ask for a confirmation'] as const;

function addLogins(program: Command, tools: ProgramTools): void {
  add(program, 'login', tools)
    .description('Log in as a server administrator, for the commands user, room, media and token.')
    .option('-u, --user <name>', 'the name of the administrator; asked for if absent')
    .option('--password-file <path>', 'a file with the password; - reads it from standard input')
    .addHelpText(
      'after',
      `
The access token is stored in ~/.config/hearth/logins.json, which only you can read. With --token-file, the token in that file
is stored: use it with servers where users log in by single sign-on or OAuth 2.0.`,
    )
    .action(async (flags: LoginFlags) => (await import('./login.ts')).login(flags));
  add(program, 'logout', tools)
    .description('End the stored login.')
    .action(async (flags: AdministrationFlags) => (await import('./login.ts')).logout(flags));
}

function addUsers(program: Command, tools: ProgramTools): void {
  const userCommand = tools.addCommand(program, 'user').description('Manage the users of a running server.');
  userCommand.addHelpText('after', addressHelp);
  const load = () => import('./user-commands.ts');
  const userArgument = ['<user>', 'ann, or @ann:example.org'] as const;
  add(userCommand, 'list', tools)
    .description('List users.')
    .option('--name <text>', 'a part of the name or of the display name')
    .option('--admins', 'server administrators only')
    .option('--deactivated', 'deactivated users, too')
    .option('--locked', 'locked users only')
    .option('--no-guests', 'without guests')
    .option('--order-by <field>', 'name, displayname, creation_ts, last_seen_ts, …')
    .option('--reverse', 'in the opposite order')
    .action(async (flags: UserListFlags) => (await load()).listUsers(flags));
  add(userCommand, 'show', tools)
    .description('Show the details of a user.')
    .argument(...userArgument)
    .action(async (name: string, flags: AdministrationFlags) => (await load()).showUser(name, flags));
  add(userCommand, 'create', tools)
    .description('Create a user. The password is asked for, or read from a pipe.')
    .argument(...userArgument)
    .option('--password-file <path>', 'a file with the password; - reads it from standard input')
    .option('--display-name <name>', 'the name that others see')
    .option('-a, --admin', 'make the user a server administrator')
    .action(async (name: string, flags: CreateUserFlags) => (await load()).createUser(name, flags));
  add(userCommand, 'password', tools)
    .description('Set a new password, and end all sessions.')
    .argument(...userArgument)
    .option('--password-file <path>', 'a file with the password; - reads it from standard input')
    .option('--keep-sessions', 'do not end the sessions')
    .action(async (name: string, flags: PasswordFlags) => (await load()).setPassword(name, flags));
  add(userCommand, 'deactivate', tools)
    .description('End an account: the user cannot log in again, and leaves all rooms.')
    .argument(...userArgument)
    .option('--erase', 'redact the messages of the user for users who join rooms later')
    .option(...yes)
    .action(async (name: string, flags: AdministrationFlags & { erase?: boolean }) =>
      (await load()).deactivateUser(name, flags),
    );
  for (const [command, locked] of [
    ['lock', true],
    ['unlock', false],
  ] as const) {
    add(userCommand, command, tools)
      .description(locked ? 'Keep a user from doing anything, until unlock.' : 'Undo lock.')
      .argument(...userArgument)
      .action(async (name: string, flags: AdministrationFlags) =>
        (await load()).setLocked(name, locked, flags),
      );
  }
  for (const [command, suspended] of [
    ['suspend', true],
    ['unsuspend', false],
  ] as const) {
    add(userCommand, command, tools)
      .description(
        suspended
          ? 'Let a user only read, leave rooms and redact own messages, until unsuspend.'
          : 'Undo suspend.',
      )
      .argument(...userArgument)
      .action(async (name: string, flags: AdministrationFlags) =>
        (await load()).setSuspended(name, suspended, flags),
      );
  }
  add(userCommand, 'admin', tools)
    .description('Make a user a server administrator.')
    .argument(...userArgument)
    .option('--revoke', 'take the rights away')
    .action(async (name: string, flags: AdministrationFlags & { revoke?: boolean }) =>
      (await load()).setAdmin(name, flags),
    );
  add(userCommand, 'sessions', tools)
    .description('List the sessions (devices) of a user.')
    .argument(...userArgument)
    .action(async (name: string, flags: AdministrationFlags) => (await load()).listSessions(name, flags));
  add(userCommand, 'logout', tools)
    .description('End sessions of a user: the given ones, or all.')
    .argument(...userArgument)
    .argument('[session...]', 'as user sessions lists them')
    .action(async (name: string, sessions: string[], flags: AdministrationFlags) =>
      (await load()).logOutUser(name, sessions, flags),
    );
}

function addRooms(program: Command, tools: ProgramTools): void {
  const roomCommand = tools.addCommand(program, 'room').description('Manage the rooms of a running server.');
  roomCommand.addHelpText('after', addressHelp);
  const load = () => import('./room-commands.ts');
  const roomArgument = ['<room>', "'!id', or '#alias' or '#alias:example.org'"] as const;
  add(roomCommand, 'list', tools)
    .description('List rooms.')
    .option('--search <text>', 'a part of the name, the alias or the id')
    .option('--order-by <field>', 'name, canonical_alias, joined_members, state_events, …')
    .option('--reverse', 'in the opposite order')
    .action(async (flags: RoomListFlags) => (await load()).listRooms(flags));
  add(roomCommand, 'show', tools)
    .description('Show the details of a room.')
    .argument(...roomArgument)
    .action(async (room: string, flags: AdministrationFlags) => (await load()).showRoom(room, flags));
  add(roomCommand, 'members', tools)
    .description('List the joined members of a room.')
    .argument(...roomArgument)
    .action(async (room: string, flags: AdministrationFlags) => (await load()).listMembers(room, flags));
  add(roomCommand, 'delete', tools)
    .description('Remove all local members from a room, and delete its messages on this server.')
    .argument(...roomArgument)
    .option('--block', 'keep local users from entering it again')
    .option('--no-purge', 'do not delete the messages')
    .option('--force', 'delete the messages even if members cannot be removed')
    .option('--new-room-user <user>', 'move the members to a new room that this user creates')
    .option('--new-room-name <name>', 'the name of the new room')
    .option('--message <text>', 'the first message in the new room')
    .option(...yes)
    .action(async (room: string, flags: DeleteRoomFlags) => (await load()).deleteRoom(room, flags));
  for (const [command, block] of [
    ['block', true],
    ['unblock', false],
  ] as const) {
    add(roomCommand, command, tools)
      .description(
        block
          ? 'Keep local users from entering a room, even a room that the server does not know.'
          : 'Undo block.',
      )
      .argument(...roomArgument)
      .action(async (room: string, flags: AdministrationFlags) =>
        (await load()).setBlocked(room, block, flags),
      );
  }
  add(roomCommand, 'purge-history', tools)
    .description('Delete old messages of a room on this server.')
    .argument(...roomArgument)
    .requiredOption('--before <time>', 'a date (2026-11-23), an age (30d), or the id of an event ($…)')
    .option('--delete-local', 'delete messages of local users, too, which other servers may not have')
    .option(...yes)
    .action(async (room: string, flags: PurgeHistoryFlags) => (await load()).purgeHistory(room, flags));
  add(roomCommand, 'make-admin', tools)
    .description(
      'Give a user, by default yourself, the highest power level that a local member of the room has.',
    )
    .argument(...roomArgument)
    .argument('[user]', 'ann, or @ann:example.org')
    .action(async (room: string, user: string | undefined, flags: AdministrationFlags) =>
      (await load()).makeRoomAdmin(room, user, flags),
    );
}

function addMedia(media: Command, tools: ProgramTools): void {
  media.addHelpText('after', addressHelp);
  const load = () => import('./media-commands.ts');
  const mediaArgument = ['media', 'addresses of files: mxc://example.org/id'] as const;
  add(media, 'list', tools)
    .description('List the uploads of a user, or the media that the events of a room link to.')
    .option('--user <user>', 'ann, or @ann:example.org')
    .option('--room <room>', "'!id' or '#alias'; media in encrypted messages is not found")
    .action(async (flags: MediaSelection) => (await load()).listMedia(flags));
  add(media, 'quarantine', tools)
    .description('Keep files from being downloaded: given ones, or all of a user or a room.')
    .argument(`[${mediaArgument[0]}...]`, mediaArgument[1])
    .option('--user <user>', 'everything that the user has uploaded')
    .option('--room <room>', 'all files to which the events of the room link')
    .action(async (uris: string[], flags: MediaSelection) => (await load()).quarantineMedia(uris, flags));
  add(media, 'unquarantine', tools)
    .description('Undo quarantine.')
    .argument(`<${mediaArgument[0]}...>`, mediaArgument[1])
    .action(async (uris: string[], flags: AdministrationFlags) =>
      (await load()).unquarantineMedia(uris, flags),
    );
  add(media, 'delete', tools)
    .description('Delete files of this server: given ones, all of a user, or those last used before a time.')
    .argument(`[${mediaArgument[0]}...]`, mediaArgument[1])
    .option('--user <user>', 'everything that the user has uploaded')
    .option('--before <time>', 'files last used before a date (2026-11-23), or longer ago than an age (90d)')
    .option('--larger-than <bytes>', 'with --before: larger files only', parseBytes)
    .option('--include-profiles', 'with --before: also avatars of users and rooms')
    .option(...yes)
    .action(async (uris: string[], flags: DeleteMediaFlags) => (await load()).deleteMedia(uris, flags));
  add(media, 'purge-remote', tools)
    .description('Delete copies of media of other servers. They are fetched again on demand.')
    .requiredOption(
      '--before <time>',
      'files last used before a date (2026-11-23), or longer ago than an age (30d)',
    )
    .action(async (flags: AdministrationFlags & { before: string }) =>
      (await load()).purgeRemoteMedia(flags),
    );
}

function addTokens(program: Command, tools: ProgramTools): void {
  const tokenCommand = tools
    .addCommand(program, 'token')
    .description('Manage the registration tokens of a running server.');
  tokenCommand.addHelpText('after', addressHelp);
  const load = () => import('./token-commands.ts');
  const withLimits = (command: Command) =>
    command
      .option('--uses <number>', 'how many accounts it can register, or any for no limit')
      .option('--expires <time>', 'a date (2026-11-23), a duration from now (7d), or never');
  add(tokenCommand, 'list', tools)
    .description('List tokens.')
    .option('--valid', 'only tokens that can be used')
    .option('--invalid', 'only tokens that cannot be used')
    .action(async (flags: AdministrationFlags & { valid?: boolean; invalid?: boolean }) =>
      (await load()).listTokens(flags),
    );
  withLimits(add(tokenCommand, 'create', tools))
    .description('Create a token, and print it.')
    .option('--token <text>', 'the token; random if absent')
    .action(async (flags: TokenLimits & { token?: string }) => (await load()).createToken(flags));
  withLimits(add(tokenCommand, 'change', tools))
    .description('Change the limits of a token.')
    .argument('<token>')
    .action(async (token: string, flags: TokenLimits) => (await load()).changeToken(token, flags));
  add(tokenCommand, 'delete', tools)
    .description('Delete a token.')
    .argument('<token>')
    .action(async (token: string, flags: AdministrationFlags) => (await load()).deleteToken(token, flags));
}

function parseBytes(text: string): number {
  const [, amount, unit = ''] = /^(\d{1,15})([KMG]?)$/i.exec(text) ?? [];
  if (amount === undefined) throw new InvalidArgumentError('Not a size; expected for example 500K or 10M.');
  return (
    Number(amount) *
    { '': 1, K: 1024, M: 1024 ** 2, G: 1024 ** 3 }[unit.toUpperCase() as '' | 'K' | 'M' | 'G']
  );
}
