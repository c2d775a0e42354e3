import {
  changeUser,
  deactivateUser,
  redactMessages,
  resetPassword,
  setAdministrator,
  setShadowBanned,
  setSuspended,
  type UserDetails,
} from '../api/users.ts';
import { Action, textOf } from '../components/dialog.tsx';
import { Checkbox, TextField } from '../components/fields.tsx';
import { useSession } from '../shell/session-context.ts';

interface ActionsProps {
  readonly user: UserDetails;
  readonly onDone: () => void;
}

/** Buttons for the actions of administrators on an account. */
export function UserActions({ user, onDone }: ActionsProps) {
  const { userId: self } = useSession();
  if (user.deactivated) return user.erased ? null : <Reactivate user={user} onDone={onDone} />;
  const isOwn = user.name === self;
  return (
    <div class="actions wrap">
      <Rename user={user} onDone={onDone} />
      <ResetPassword user={user} onDone={onDone} />
      {!isOwn && (
        <>
          <AdministratorRights user={user} onDone={onDone} />
          <Lock user={user} onDone={onDone} />
          <Suspend user={user} onDone={onDone} />
          <RedactMessages user={user} onDone={onDone} />
          <ShadowBan user={user} onDone={onDone} />
          <Deactivate user={user} onDone={onDone} />
        </>
      )}
    </div>
  );
}

function Rename({ user, onDone }: ActionsProps) {
  const { api } = useSession();
  const rename = async (fields: FormData) => {
    await changeUser(api, user.name, { displayname: String(fields.get('displayname')) });
    return 'The name has been changed.';
  };
  return (
    <Action
      label="Change the name"
      title="Change the display name"
      confirm="Save"
      action={rename}
      onDone={onDone}
    >
      <TextField label="Display name" name="displayname" value={user.displayname ?? ''} />
    </Action>
  );
}

function ResetPassword({ user, onDone }: ActionsProps) {
  const { api } = useSession();
  const reset = async (fields: FormData) => {
    await resetPassword(api, user.name, String(fields.get('password')), fields.has('logout'));
    return 'The password has been changed.';
  };
  return (
    <Action
      label="Reset the password"
      title="Reset the password"
      confirm="Set the password"
      action={reset}
      onDone={onDone}
    >
      <TextField label="New password" name="password" type="password" autocomplete="new-password" required />
      <Checkbox label="End all sessions of the user" name="logout" checked />
    </Action>
  );
}

function AdministratorRights({ user, onDone }: ActionsProps) {
  const { api } = useSession();
  const change = async () => {
    await setAdministrator(api, user.name, !user.admin);
    return user.admin
      ? `${user.name} is no administrator any more.`
      : `${user.name} is an administrator now.`;
  };
  return user.admin ? (
    <Action
      label="Remove administrator rights"
      title="Remove administrator rights?"
      confirm="Remove them"
      kind="danger"
      action={change}
      onDone={onDone}
    >
      <p>{user.name} will not be able to use this console and the admin API.</p>
    </Action>
  ) : (
    <Action
      label="Make administrator"
      title="Make this user an administrator?"
      confirm="Make administrator"
      action={change}
      onDone={onDone}
    >
      <p>{user.name} will be able to change all accounts, rooms and media of this server.</p>
    </Action>
  );
}

function Lock({ user, onDone }: ActionsProps) {
  const { api } = useSession();
  const change = async () => {
    await changeUser(api, user.name, { locked: !user.locked });
    return user.locked ? 'The account has been unlocked.' : 'The account has been locked.';
  };
  return (
    <Action
      label={user.locked ? 'Unlock' : 'Lock'}
      title={user.locked ? 'Unlock this account?' : 'Lock this account?'}
      action={change}
      onDone={onDone}
    >
      <p>
        {user.locked
          ? 'The user can use the account again, with the same sessions.'
          : 'The user can do nothing but log out, until the account is unlocked. Sessions stay.'}
      </p>
    </Action>
  );
}

function Suspend({ user, onDone }: ActionsProps) {
  const { api } = useSession();
  const change = async () => {
    await setSuspended(api, user.name, !user.suspended);
    return user.suspended ? 'The suspension has ended.' : 'The account has been suspended.';
  };
  return (
    <Action
      label={user.suspended ? 'End the suspension' : 'Suspend'}
      title={user.suspended ? 'End the suspension?' : 'Suspend this account?'}
      action={change}
      onDone={onDone}
    >
      <p>
        {user.suspended
          ? 'The user can send messages and join rooms again.'
          : 'The user can read, but cannot send messages, join rooms or change the profile.'}
      </p>
    </Action>
  );
}

function RedactMessages({ user, onDone }: ActionsProps) {
  const { api } = useSession();
  const redact = async (fields: FormData) => {
    await redactMessages(api, user.name, textOf(fields, 'reason'));
    return 'The redaction has begun: see "Background jobs".';
  };
  return (
    <Action
      label="Redact all messages"
      title="Redact the messages of this user?"
      confirm="Redact them"
      kind="danger"
      action={redact}
      onDone={onDone}
    >
      <p>The content of the newest 1,000 events of {user.name} in each room is removed for all members.</p>
      <TextField label="Reason" name="reason" />
    </Action>
  );
}

function ShadowBan({ user, onDone }: ActionsProps) {
  const { api } = useSession();
  const change = async () => {
    await setShadowBanned(api, user.name, !user.shadow_banned);
    return user.shadow_banned ? 'The shadow-ban has ended.' : 'The user has been shadow-banned.';
  };
  return (
    <Action
      label={user.shadow_banned ? 'End the shadow-ban' : 'Shadow-ban'}
      title={user.shadow_banned ? 'End the shadow-ban?' : 'Shadow-ban this user?'}
      kind={user.shadow_banned ? 'plain' : 'danger'}
      action={change}
      onDone={onDone}
    >
      <p>
        {user.shadow_banned
          ? 'What the user sends reaches others again.'
          : 'Requests of the user will seem to succeed, but nothing is sent to anyone. This may break clients: use it as a last resort.'}
      </p>
    </Action>
  );
}

function Deactivate({ user, onDone }: ActionsProps) {
  const { api } = useSession();
  const deactivate = async (fields: FormData) => {
    await deactivateUser(api, user.name, fields.has('erase'));
    return `${user.name} has been deactivated.`;
  };
  return (
    <Action
      label="Deactivate"
      title={`Deactivate ${user.name}?`}
      kind="danger"
      action={deactivate}
      onDone={onDone}
    >
      <p>
        All sessions end, the user leaves all rooms, and password, addresses and profile are removed. The user
        name cannot be registered again.
      </p>
      <Checkbox
        label="Erase the messages"
        name="erase"
        hint="Users who join rooms later do not see them, and the account cannot be activated again."
      />
    </Action>
  );
}

function Reactivate({ user, onDone }: ActionsProps) {
  const { api } = useSession();
  const activate = async (fields: FormData) => {
    await changeUser(api, user.name, { deactivated: false, password: String(fields.get('password')) });
    return `${user.name} is active again.`;
  };
  return (
    <div class="actions wrap">
      <Action label="Activate again" title={`Activate ${user.name} again?`} action={activate} onDone={onDone}>
        <TextField
          label="New password"
          name="password"
          type="password"
          autocomplete="new-password"
          required
        />
      </Action>
    </div>
  );
}
