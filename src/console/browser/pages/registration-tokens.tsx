import {
  changeToken,
  createToken,
  deleteToken,
  listTokens,
  type RegistrationToken,
  type TokenLimits,
} from '../api/registration-tokens.ts';
import { Action, textOf } from '../components/dialog.tsx';
import { TextField } from '../components/fields.tsx';
import { formatCount } from '../components/format.ts';
import { Badge, Page, WhenLoaded } from '../components/layout.tsx';
import { type Column, Table } from '../components/table.tsx';
import { Time } from '../components/times.tsx';
import { useLoaded } from '../shell/loading.ts';
import { useSession } from '../shell/session-context.ts';

/** The page of registration tokens. */
export function RegistrationTokensPage() {
  const { api } = useSession();
  const tokens = useLoaded((signal) => listTokens(api, signal), []);
  const create = async (fields: FormData) => {
    const { token } = await createToken(api, limitsOf(fields), textOf(fields, 'token'));
    return `The token is ${token}.`;
  };
  return (
    <Page
      title="Registration tokens"
      actions={
        <Action
          label="Create a token"
          title="Create a registration token"
          confirm="Create"
          kind="primary"
          action={create}
          onDone={tokens.reload}
        >
          <TextField
            label="Token"
            name="token"
            pattern="[A-Za-z0-9._~\-]{1,64}"
            hint="Up to 64 letters, digits and . _ ~ -. Leave it empty for a random one."
          />
          <LimitFields />
        </Action>
      }
    >
      <p class="soft">Where registration requires a token, users register with one of these.</p>
      <WhenLoaded loaded={tokens}>
        {(rows) => (
          <Table
            caption="Registration tokens"
            columns={columns(tokens.reload)}
            rows={rows}
            keyOf={({ token }) => token}
            empty="There are no registration tokens."
          />
        )}
      </WhenLoaded>
    </Page>
  );
}

const columns = (reload: () => void): readonly Column<RegistrationToken>[] => [
  { title: 'Token', cell: ({ token }) => <code>{token}</code> },
  { title: 'State', cell: (token) => <State token={token} /> },
  {
    title: 'Used',
    isNumber: true,
    cell: ({ completed, uses_allowed: allowed }) =>
      `${formatCount(completed)} of ${allowed === null ? 'any number' : formatCount(allowed)}`,
  },
  { title: 'Pending', isNumber: true, cell: ({ pending }) => formatCount(pending) },
  { title: 'Expires', cell: ({ expiry_time: at }) => (at === null ? 'never' : <Time at={at} />) },
  { title: '', cell: (token) => <TokenActions token={token} onDone={reload} /> },
];

function State({ token }: { readonly token: RegistrationToken }) {
  if (token.expiry_time !== null && token.expiry_time <= Date.now()) return <Badge>Expired</Badge>;
  const isUsed = token.uses_allowed !== null && token.completed + token.pending >= token.uses_allowed;
  return isUsed ? <Badge>Used up</Badge> : <Badge kind="good">Valid</Badge>;
}

function TokenActions({ token, onDone }: { token: RegistrationToken; onDone: () => void }) {
  const { api } = useSession();
  return (
    <div class="actions">
      <Action
        label="Change"
        about={`Change ${token.token}`}
        title={`Change ${token.token}`}
        confirm="Save"
        onDone={onDone}
        action={async (fields) => {
          await changeToken(api, token.token, changedLimits(fields, token));
          return 'The token has been changed.';
        }}
      >
        <LimitFields token={token} />
      </Action>
      <Action
        label="Delete"
        about={`Delete ${token.token}`}
        title={`Delete ${token.token}?`}
        kind="danger"
        onDone={onDone}
        action={async () => {
          await deleteToken(api, token.token);
          return 'The token has been deleted.';
        }}
      >
        <p>New users cannot register with it any more. Accounts that were registered with it stay.</p>
      </Action>
    </div>
  );
}

function LimitFields({ token }: { readonly token?: RegistrationToken }) {
  return (
    <>
      <TextField
        label="Number of uses"
        name="uses"
        type="number"
        min={0}
        value={String(token?.uses_allowed ?? '')}
        hint="Leave it empty for any number."
      />
      <TextField
        label="Expires"
        name="expires"
        type="datetime-local"
        value={shownExpiry(token)}
        hint="In your time zone. Leave it empty for a token that does not expire."
      />
    </>
  );
}

function limitsOf(fields: FormData): TokenLimits {
  const uses = textOf(fields, 'uses');
  const expires = textOf(fields, 'expires');
  return {
    uses_allowed: uses === '' ? null : Number(uses),
    expiry_time: expires === '' ? null : new Date(expires).getTime(),
  };
}

/**
 * Returns the limits that a form changes. An expiry that the administrator has not edited is left out, because the form
 * shows it without seconds.
 */
function changedLimits(fields: FormData, token: RegistrationToken): Partial<TokenLimits> {
  const { uses_allowed, expiry_time } = limitsOf(fields);
  return textOf(fields, 'expires') === shownExpiry(token) ? { uses_allowed } : { uses_allowed, expiry_time };
}

/** Returns the expiry of a token as the form shows it; empty for none. */
const shownExpiry = (token: RegistrationToken | undefined) =>
  token === undefined || token.expiry_time === null ? '' : localTime(token.expiry_time);

/**
 * The latest time that a `datetime-local` field shows here, in milliseconds since the epoch: early enough that the year has
 * four digits in every time zone.
 */
const latestTime = Date.UTC(9999, 11, 30);

/** Returns a time as the value of a `datetime-local` field: in the time zone of the browser, without its offset. */
function localTime(time: number): string {
  const shown = Math.min(time, latestTime);
  const offset = new Date(shown).getTimezoneOffset() * 60_000;
  return new Date(shown - offset).toISOString().slice(0, 16);
}
