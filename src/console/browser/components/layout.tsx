/** Parts that all pages are made of. */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { Loaded } from '../shell/loading.ts';
import { formatCount } from './format.ts';
import { ErrorMessage } from './messages.tsx';

interface PageProps {
  readonly title: string;
  /** Name of the page for the title of the window; by default the title. */
  readonly about?: string | undefined;
  /** The parent page. A link above the heading leads to it. */
  readonly up?: { readonly href: string; readonly text: string } | undefined;
  readonly actions?: ComponentChildren;
  readonly children: ComponentChildren;
}

/** A page with its heading. The heading receives the focus when the page is opened, so that screen readers read it. */
export function Page({ title, about = title, up, actions, children }: PageProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${about} · Hearth console`;
    heading.current?.focus({ preventScroll: true });
    scrollTo(0, 0);
  }, [about]);
  return (
    <>
      {up && (
        <a class="up" href={up.href}>
          ← {up.text}
        </a>
      )}
      <header class="page-header">
        <h1 tabIndex={-1} ref={heading}>
          {title}
        </h1>
        {actions && <div class="actions">{actions}</div>}
      </header>
      {children}
    </>
  );
}

/** A part of a page with a heading. */
export function Section({
  title,
  actions,
  children,
}: {
  readonly title: string;
  readonly actions?: ComponentChildren;
  readonly children: ComponentChildren;
}) {
  return (
    <section class="card">
      <header>
        <h2>{title}</h2>
        {actions && <div class="actions">{actions}</div>}
      </header>
      {children}
    </section>
  );
}

/** Shows a value when it is loaded, and before that a note that it is loading, or the error. */
export function WhenLoaded<Value>({
  loaded,
  children,
}: {
  readonly loaded: Loaded<Value>;
  readonly children: (value: Value) => ComponentChildren;
}) {
  const { value, error, reload } = loaded;
  return (
    <>
      {error && <ErrorMessage error={error} retry={reload} />}
      {value === undefined ? !error && <p class="loading">Loading …</p> : children(value)}
    </>
  );
}

/** Names and values. Values that are `undefined` are left out. */
export function Facts({ facts }: { readonly facts: readonly (readonly [string, ComponentChildren])[] }) {
  return (
    <dl class="facts">
      {facts
        .filter(([, value]) => value !== undefined)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

export function Empty({ children }: { readonly children: ComponentChildren }) {
  return <p class="empty">{children}</p>;
}

export function Badge({
  kind = 'plain',
  children,
}: {
  readonly kind?: 'plain' | 'good' | 'warning' | 'bad' | 'accent';
  readonly children: ComponentChildren;
}) {
  return <span class={`badge ${kind}`}>{children}</span>;
}

/** A progress bar. @param value between 0 and 1; absent: unknown */
export function Progress({ label, value }: { readonly label: string; readonly value?: number | undefined }) {
  return (
    <div class="progress">
      <progress aria-label={label} max={1} {...(value !== undefined && { value })} />
      {value !== undefined && <span>{Math.floor(value * 100)} %</span>}
    </div>
  );
}

/** The progress of a job. @param progress absent: unknown */
export function JobProgress({
  label,
  progress,
}: {
  readonly label: string;
  readonly progress: { readonly done: number; readonly total: number | null } | null | undefined;
}) {
  if (!progress) return <Progress label={label} />;
  if (progress.total === null) return <span>{formatCount(progress.done)} done</span>;
  return <Progress label={label} value={progress.done / Math.max(1, progress.total)} />;
}
