"""Where belino connects to: the table, the one reading of a URL, and what an operator may add."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from belino.domain.errors import AddressRefused, ConfigError
from belino.net.guard import REFUSED, Guard, NetConfig, host_of, is_public, parse_url, redirected

PUBLIC = """
1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.1 149.154.167.220
168.63.129.15 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 191.255.255.255 192.0.1.1 192.0.3.0 192.167.255.255
192.169.0.0 198.17.255.255 198.20.0.0 198.51.101.0 203.0.114.0 223.255.255.255
2001:200::1 2001:4860:4860::8888 2003::1 2606:4700::1111 2a00:1450:4001::1 2620:fe::fe 3ffe::1 3fff:1000::1
""".split()  # noqa: SIM905 - a table to be read

SPECIAL = """
0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.100.100.200 100.127.255.255 127.0.0.1 127.255.255.254
168.63.129.16 169.254.0.1 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.1 192.0.0.192 192.0.2.1 192.88.99.1
192.168.0.1 192.168.255.255 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1
255.255.255.255
:: ::1 ::7f00:1 ::127.0.0.1 ::8.8.8.8 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 ::ffff:8.8.8.8
::ffff:0:127.0.0.1 64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b::8.8.8.8 64:ff9b:1::1 100::1 100:0:0:1::1
2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:2::1 2001:10::1 2001:20::1 2001:1ff:ffff::1 2001:db8::1
2002:7f00:1::1 2002:a00:1::1 2002:808:808::1 3fff::1 3fff:fff:ffff::1 4000::1 5f00::1 fc00::1 fd00:ec2::254
fdff::1 fe80::1 fe80::1%1 2606:4700::1111%1 fec0::1 ff02::1 ff0e::1
""".split()  # noqa: SIM905 - a table to be read


@pytest.mark.parametrize("address", PUBLIC)
def test_an_address_anybody_may_have_is_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize("address", SPECIAL)
def test_an_address_with_a_special_purpose_is_not_public_however_it_is_written(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("text", ["", "localhost", "8.8.8", "8.8.8.8.8", "8.8.8.8/32", "08.8.8.8", "x", "1.1.1.1\n"])
def test_what_is_no_address_is_not_public(text: str) -> None:
    assert not is_public(text)


LOOPBACK_IN_DISGUISE = [
    "http://127.0.0.1/",
    "http://127.1/",
    "http://127.0.1",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0x7F.1/",
    "http://0177.0.0.1/",
    "http://0177.0x0.0.1/",
    "http://017700000001",
    "http://127.0.0.1./",
    "http://127.1.:80/",
    "http://0/",
    "http://0.0.0.0:80/",
    "http://[::1]/",
    "http://[0:0:0:0:0:0:0:1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]:80/",
    "http://[::ffff:10.0.0.1]/",
    "http://[::127.0.0.1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[2002:7f00:1::]/",
    "http://[fe80::1]/",
    "http://169.254.169.254/latest/meta-data/",
    "http://0xa9fea9fe/latest/meta-data/",
    "http://2852039166/",
    "http://[fd00:ec2::254]/latest/",
    "http://100.100.100.200/",
    "https://10.0.0.1/",
    "https://192.168.1.1:8443/x?y=http://8.8.8.8/",
]

NO_URLS = [
    "",
    "/",
    "//127.0.0.1/",
    "http:",
    "http:/",
    "http://",
    "http:///path",
    "http:127.0.0.1",
    "file:///etc/passwd",
    "ftp://example.com/",
    "gopher://example.com/",
    "data:text/plain,x",
    "javascript:alert(1)",
    "unix:/run/x.sock",
    "http+unix://x",
    "HTTPSX://example.com",
    " http://example.com/",
    "http://example.com/ ",
    "http://exam ple.com/",
    "http://example.com/a b",
    "http://example.com\t/",
    "http://exa\tmple.com/",
    "ht\ntp://example.com/",
    "http://example.com/\r\nX-Evil: 1",
    "http://example.com\x00.evil.test/",
    "http://example.com\\@127.0.0.1/",
    "http:\\\\127.0.0.1/",
    "http://127.0.0.1\\.example.com/",
    "http://example.com/\\..\\x",
    "http://user@example.com/",
    "http://user:pass@example.com/",
    "http://example.com@127.0.0.1/",
    "http://127.0.0.1#@example.com/x@y:z@",
    "http://@example.com/",
    "http://example.com:80@127.0.0.1/",
    "http://exämple.com/",
    "http://１２７.０.０.１/",
    "http://127。0。0。1/",
    "http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/",
    "http://example.com\u2024test/",
    "http://%31%32%37.0.0.1/",
    "http://127.0.0.1%2f.example.com/",
    "http://example.com%00.test/",
    "http://[::1%25lo]/",
    "http://[::1%lo]/",
    "http://[::1/",
    "http://::1/",
    "http://[127.0.0.1]/",
    "http://[example.com]/",
    "http://[]/",
    "http://[::1]x/",
    "http://x[::1]/",
    "http://example.com:/",
    "http://example.com:0/",
    "http://example.com:65536/",
    "http://example.com:99999999/",
    "http://example.com:8x/",
    "http://example.com:-1/",
    "http://example.com:80:80/",
    "http://.example.com/",
    "http://example..com/",
    "http://example.com../",
    "http://./",
    "http://-example.com/",
    "http://example-.com/",
    "http://" + "a" * 64 + ".com/",
    "http://" + "a." * 127 + "com/",
    "http://1.2.3.4.5/",
    "http://256.256.256.256/",
    "http://0x100000000/",
    "http://4294967296/",
    "http://08.8.8.8/",
    "http://example.com.1/",
    "http://a,b/",
    "http://a;b/",
    "http://a|b/",
    "http://<script>/",
]


@pytest.mark.parametrize("url", LOOPBACK_IN_DISGUISE)
def test_a_literal_address_is_judged_by_what_it_is_not_by_how_it_is_spelt(url: str) -> None:
    with pytest.raises(AddressRefused) as refused:
        Guard().check(parse_url(url))
    assert str(refused.value) == REFUSED


@pytest.mark.parametrize("url", NO_URLS)
def test_a_url_that_two_programs_could_read_differently_is_refused(url: str) -> None:
    if url == "http://127.0.0.1#@example.com/x@y:z@":  # readable in one way only, and that leads to loopback
        with pytest.raises(AddressRefused):
            Guard().check(parse_url(url))
        return
    with pytest.raises(AddressRefused) as refused:
        parse_url(url)
    assert str(refused.value) == REFUSED


@pytest.mark.parametrize(
    ("url", "read"),
    [
        ("https://api.telegram.org/bot1:x/getMe", "https://api.telegram.org:443/bot1:x/getMe"),
        ("HTTPS://API.Telegram.ORG.:443/x?y#z", "https://api.telegram.org:443/x?y"),
        ("http://example.com?q=@", "http://example.com:80/?q=@"),
        ("http://example.com#f", "http://example.com:80/"),
        ("http://010.8.8.8/", "http://8.8.8.8:80/"),
        ("http://134744072/", "http://8.8.8.8:80/"),
        ("https://[2606:4700:0::1111]:8443/", "https://[2606:4700::1111]:8443/"),
        ("https://my_host.example/", "https://my_host.example:443/"),
        ("https://xn--mnchen-3ya.de/", "https://xn--mnchen-3ya.de:443/"),
        ("https://example.com/grüße/[x]?a=ü", "https://example.com:443/grüße/[x]?a=ü"),
    ],
)
def test_an_ordinary_url_is_read_in_its_one_spelling(url: str, read: str) -> None:
    assert str(parse_url(url)) == read
    Guard().check(parse_url(url))


@given(st.text(alphabet="htps:/\\@[]%.#?0123456789abx \t\ne١。", max_size=40).map(lambda text: f"http://{text}"))
def test_what_the_library_connects_to_is_what_was_judged(url: str) -> None:
    try:
        place = parse_url(url)
    except AddressRefused:
        return
    other = URL(str(place))
    assert (other.scheme, other.raw_host, other.port) == place.origin


@pytest.mark.parametrize(
    ("location", "leads"),
    [
        ("/other", "https://a.example:443/other"),
        ("other?x=1", "https://a.example:443/dir/other?x=1"),
        ("//b.example/x", "https://b.example:443/x"),
        ("https://b.example:8443/", "https://b.example:8443/"),
    ],
)
def test_a_redirect_leads_where_its_location_says(location: str, leads: str) -> None:
    assert str(redirected(parse_url("https://a.example/dir/file"), location)) == leads


@pytest.mark.parametrize(
    "location",
    [
        "http://a.example/dir/file",
        "http://b.example/",
        "ftp://b.example/",
        "file:///etc/passwd",
        "//user@b.example/",
        "\\\\b.example/",
        "/\\b.example/",
        "https:/\t/b.example",
        "ht\ntps://b.example/",
        "https://b.example/ x",
        "https://b\u3002example/",
        "javascript:alert(1)",
        "https://[::1",
    ],
)
def test_a_redirect_back_to_plain_http_or_to_anything_odd_is_refused(location: str) -> None:
    with pytest.raises(AddressRefused):
        redirected(parse_url("https://a.example/dir/file"), location)


def test_an_operator_opens_networks_and_single_places() -> None:
    guard = Guard(["198.18.0.0/15", "fd00::/8", "10.0.0.7", "bot-api:8081", "[::1]:80", "127.1:9"])
    assert guard.lets("198.18.3.4") and guard.lets("fd00::1") and guard.lets("10.0.0.7") and guard.lets("8.8.8.8")
    assert not guard.lets("10.0.0.8") and not guard.lets("127.0.0.1") and not guard.lets("::ffff:10.0.0.7")
    assert guard.names(parse_url("http://BOT-API.:8081/x")) and guard.names(parse_url("https://bot-api:8081"))
    assert not guard.names(parse_url("http://bot-api/")) and not guard.names(parse_url("http://bot-api.x:8081/"))
    guard.check(parse_url("http://[::1]/"))
    guard.check(parse_url("http://127.0.0.1:9/"))
    with pytest.raises(AddressRefused):
        guard.check(parse_url("http://127.0.0.1:10/"))


@pytest.mark.parametrize(
    "entry", ["", "bot-api", "http://x:80", "x:0", "10.0.0.0/33", "10.1.2.3/8", "a b:80", "x:80/y"]
)
def test_an_exception_that_is_neither_a_network_nor_a_place_is_a_mistake(entry: str) -> None:
    with pytest.raises(ConfigError, match="write a network like"):
        NetConfig(allow=(entry,))


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://api.telegram.org", "api.telegram.org"),
        ("https://api.telegram.org/", "api.telegram.org"),
        ("https://bot-api.internal:443", "bot-api.internal:443"),
        ("http://127.0.0.1:8081", "127.0.0.1:8081"),
        ("http://bot-api/", "bot-api:80"),
        ("http://[::1]:8081/", "[::1]:8081"),
        ("https://[2606:4700::1111]/", "[2606:4700::1111]"),
    ],
)
def test_a_base_url_is_private_only_where_the_operator_wrote_its_port_or_plain_http(url: str, host: str) -> None:
    assert host_of(url) == host
